package document

import (
	"encoding/json"
	"reflect"
	"strings"
)

// Schema returns the JSON Schema (draft 2020-12) of documents that Decode reads into values
// of this type. A field's tag doc is its description, enum its values with | between them,
// and required:"true" makes it one that must be there.
func Schema(id, title string, of any) []byte {
	schema := schemaOf(reflect.TypeOf(of))
	schema["$schema"], schema["$id"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", id, title
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(err) // maps of this package's own making always encode
	}
	return append(text, '\n')
}

// Worded types name the JSON types that their UnmarshalJSON takes.
type Worded interface{ SchemaTypes() []string }

func schemaOf(t reflect.Type) map[string]any {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if worded, is := reflect.Zero(t).Interface().(Worded); is {
		return map[string]any{"type": worded.SchemaTypes()}
	}
	switch t.Kind() {
	case reflect.Struct:
		properties, required := map[string]any{}, []string{}
		for _, field := range fieldsOf(t) {
			inner := schemaOf(field.Type)
			if text := field.Tag.Get("doc"); text != "" {
				inner["description"] = text
			}
			if words := field.Tag.Get("enum"); words != "" {
				inner["enum"] = strings.Split(words, "|")
			}
			if field.Tag.Get("required") == "true" {
				required = append(required, field.key)
			}
			properties[field.key] = inner
		}
		schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
		if len(required) > 0 {
			schema["required"] = required
		}
		return schema
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint16:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		return map[string]any{"type": "string"}
	}
	return map[string]any{} // anything
}
