package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"clove.run/clove/agent"
)

// Decode reads YAML into a struct with json tags. Unknown and repeated keys are refused, with
// the nearest key that exists. The errors are of KindInvalid. Package scripted reads its
// scripts with it.
func Decode(text []byte, into any) error {
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return wrong("", "YAML repeats no key, and indents with spaces", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	// Numbers stay text here: the tree is only compared with the type.
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return wrong("", "", "%v", err)
	}
	if err := checkKeys("", tree, reflect.TypeOf(into).Elem()); err != nil {
		return err
	}
	return typed(json.Unmarshal(document, into))
}

// checkKeys compares the keys of a decoded document with the fields of a type: encoding/json
// would accept them in any case, and name neither their place nor the nearest one.
func checkKeys(at string, value any, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			if t.Kind() != reflect.Slice {
				return nil // the wrong type: json.Unmarshal reports it
			}
			if err := checkKeys(join(at, strconv.Itoa(i)), item, t.Elem()); err != nil {
				return err
			}
		}
	case map[string]any:
		return checkFields(at, value, t)
	}
	return nil
}

func checkFields(at string, value map[string]any, t reflect.Type) error {
	known := fields(t)
	for _, key := range slices.Sorted(maps.Keys(value)) {
		inner := known[key]
		switch {
		case t.Kind() == reflect.Map:
			inner = t.Elem()
		case t.Kind() != reflect.Struct:
			return nil
		case inner == nil:
			names := slices.Sorted(maps.Keys(known))
			return wrong(at, meant(key, names, "the keys here are "+strings.Join(names, ", ")), "there is no key %.64q", key)
		}
		if err := checkKeys(join(at, key), value[key], inner); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the keys of a struct; those of embedded structs are its own. A field without
// a json tag is no key, although encoding/json would fill it.
func fields(t reflect.Type) map[string]reflect.Type {
	known := map[string]reflect.Type{}
	for i := 0; t.Kind() == reflect.Struct && i < t.NumField(); i++ {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous:
			maps.Copy(known, fields(field.Type))
		case name != "" && name != "-":
			known[name] = field.Type
		}
	}
	return known
}

// typed says in the file's words that a value has the wrong type: encoding/json names Go's
// types, and itself. Errors of this package's own types pass.
func typed(err error) error {
	var mismatch *json.UnmarshalTypeError
	var known *agent.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.As(err, &mismatch):
		what, number, _ := strings.Cut(mismatch.Value, " ")
		return wrong(mismatch.Field, "", "%s stands where %s belongs", strings.TrimSpace(values[what]+" "+number), kinds[mismatch.Type.Kind()])
	}
	return wrong("", "", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// values are encoding/json's words for what stands in a file.
var values = map[string]string{"array": "a list", "object": "a map", "string": "text", "number": "the number", "bool": "true or false"}

// kinds are what fields hold.
var kinds = map[reflect.Kind]string{reflect.String: "text", reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Float64: "a number",
	reflect.Bool: "true or false", reflect.Struct: "a map of keys", reflect.Map: "a map", reflect.Slice: "a list"}

// wrong is an error about one place of a file, as providers.openai.url.
func wrong(at, hint, format string, arguments ...any) error {
	message := fmt.Sprintf(format, arguments...)
	if at != "" {
		message = at + ": " + message
	}
	return &agent.Error{Kind: agent.KindInvalid, Message: message, Hint: hint}
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}
