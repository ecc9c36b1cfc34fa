package python

import (
	"encoding/json"
	"reflect"
	"time"
)

// form says how values of a Go type look in Python.
type form struct {
	accepts string // annotation of a parameter
	returns string // annotation of a field
	zero    string // default of a field
	kind    string // Param.kind
	read    string // expression on the JSON value, which replaces "$"
}

var (
	moment  = form{"datetime", "Optional[datetime]", "None", "time", "read_time($)"}
	any_    = form{"Any", "Any", "None", "json", "$"}
	truths  = form{"bool", "bool", "False", "bool", "$ or False"}
	text    = form{"str", "str", `""`, "string", `$ or ""`}
	integer = form{"int", "int", "0", "integer", "$ or 0"}
	number  = form{"float", "float", "0.0", "json", "$ or 0.0"}
)

// formOf returns the form of a type.
func formOf(t reflect.Type) form {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return moment
	case t == reflect.TypeFor[json.RawMessage]():
		return any_
	}
	switch t.Kind() {
	case reflect.Interface:
		return any_
	case reflect.Bool:
		return truths
	case reflect.String:
		return text
	case reflect.Float32, reflect.Float64:
		return number
	case reflect.Pointer:
		return optional(formOf(t.Elem()))
	case reflect.Slice:
		return list(t.Elem())
	case reflect.Map:
		return object(t.Elem())
	case reflect.Struct:
		return form{t.Name(), t.Name(), "field(default_factory=" + t.Name() + ")", "json", t.Name() + ".read($ or {})"}
	}
	return integer
}

// optional is the form of a value that may be absent.
func optional(f form) form {
	return form{f.accepts, "Optional[" + f.returns + "]", "None", f.kind, "$"}
}

func list(element reflect.Type) form {
	of := formOf(element)
	f := form{"Sequence[" + of.accepts + "]", "list[" + of.returns + "]", "field(default_factory=list)", "json", "list($ or ())"}
	switch element.Kind() {
	case reflect.String:
		f.kind = "strings"
	case reflect.Struct:
		f.read = "[" + element.Name() + ".read(x) for x in $ or ()]"
	}
	return f
}

func object(element reflect.Type) form {
	of := formOf(element)
	f := form{"Mapping[str, " + of.accepts + "]", "dict[str, " + of.returns + "]", "field(default_factory=dict)", "json", "dict($ or {})"}
	switch {
	case of == integer:
		f.kind = "amounts"
	case element.Kind() == reflect.Struct:
		f.read = "{k: " + element.Name() + ".read(x) for k, x in ($ or {}).items()}"
	}
	return f
}
