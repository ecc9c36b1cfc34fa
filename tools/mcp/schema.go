package mcp

import (
	"encoding/json"
	"reflect"
	"strings"
)

// schemaOf is the JSON Schema of an object with these fields of a struct.
func schemaOf(params any, fields []field) json.RawMessage {
	properties, required := map[string]any{}, []string{}
	for _, f := range fields {
		t, _ := fieldOf(reflect.TypeOf(params), f.name) // a test looks for each
		schema := typeSchema(t)
		schema["description"] = f.doc
		properties[f.name] = schema
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err) // maps of this package's own making always encode
	}
	return text
}

// fieldOf finds the type of a field by its name in JSON, also in the structs that are embedded.
func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && key == "" {
			if found, ok := fieldOf(f.Type, name); ok {
				return found, true
			}
		}
		if key == name {
			return f.Type, true
		}
	}
	return nil, false
}

// typeSchema is the schema of a parameter. Values of JSON are anything.
func typeSchema(t reflect.Type) map[string]any {
	if t == nil || t == reflect.TypeFor[json.RawMessage]() {
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "integer"}
}
