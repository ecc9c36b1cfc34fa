package contract

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// Fields has the type of each value of an object, by its path: run.spec.name. Behind the name
// of a list is [], behind that of an object with free names {}, and behind that of what may
// be absent ?. The types are string, number, bool, time, address, base64 and any. The path of
// a value that is no object is whole.
type Fields map[string]string

// whole is the path of a value without fields.
const whole = "*"

func fieldsOf(t reflect.Type) Fields {
	all := Fields{}
	all.add("", t)
	return all
}

// add adds everything below a type. An object without fields adds nothing.
func (all Fields) add(path string, t reflect.Type) {
	switch kind := kindOf(t); {
	case kind == "" && t.Kind() == reflect.Pointer:
		all.add(path, t.Elem())
	case kind == "" && t.Kind() == reflect.Slice:
		all.add(path+"[]", t.Elem())
	case kind == "" && t.Kind() == reflect.Map:
		all.add(path+"{}", t.Elem())
	case kind == "":
		all.addFields(path, t)
	case path == "":
		all[whole] = kind
	default:
		all[path] = kind
	}
}

func (all Fields) addFields(path string, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			all.add(path, f.Type)
			continue
		}
		if path != "" {
			name = path + "." + name
		}
		if strings.Contains(options, "omit") {
			name += "?"
		}
		all.add(name, f.Type)
	}
}

// kindOf returns a type's name in JSON; empty: it has parts.
func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.PkgPath() == "net/netip":
		return "address"
	case t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Interface:
		return "any"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "base64"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.String:
		return "string"
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Struct:
		return ""
	}
	return "number"
}

// value is one value of an object, or an object in it.
type value struct {
	kind     string // empty: an object
	optional bool
}

// values are the fields and the objects that they are in, by their paths without marks.
func (all Fields) values() map[string]value {
	found := map[string]value{}
	for path, kind := range all {
		parts := strings.Split(path, ".")
		plain := ""
		for i, part := range parts {
			name := strings.ReplaceAll(part, "?", "")
			if i > 0 {
				name = plain + "." + name
			}
			plain = name
			v := value{optional: strings.Contains(part, "?")}
			if i == len(parts)-1 {
				v.kind = kind
			}
			found[plain] = v
		}
	}
	return found
}
