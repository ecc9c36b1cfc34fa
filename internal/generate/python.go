package main

import (
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"text/template"
)

// pythonForm says how values of a Go type look in Python.
type pythonForm struct {
	Accepts string // annotation of a parameter
	Returns string // annotation of a field
	Zero    string // default of a field
	Kind    string // Param.kind
	read    string // expression on the JSON value, which replaces "$"
}

var pythonForms = map[kind]pythonForm{
	kindAny:     {"Any", "Any", "None", "json", "$"},
	kindBool:    {"bool", "bool", "False", "bool", "$ or False"},
	kindString:  {"str", "str", `""`, "string", `$ or ""`},
	kindAddress: {"str", "str", `""`, "string", `$ or ""`},
	kindInteger: {"int", "int", "0", "integer", "$ or 0"},
	kindNumber:  {"float", "float", "0.0", "json", "$ or 0.0"},
	kindTime:    {"datetime", "Optional[datetime]", "None", "time", "read_time($)"},
	kindBytes:   {"bytes", "bytes", `b""`, "json", "read_bytes($)"},
}

func pythonFormOf(t reflect.Type) pythonForm {
	switch k := kindOf(t); k {
	case kindPointer:
		return pythonOptional(pythonFormOf(t.Elem()))
	case kindList:
		return pythonList(t.Elem())
	case kindMap:
		return pythonMap(t.Elem())
	case kindObject:
		n := t.Name()
		return pythonForm{"Union[" + n + ", Mapping[str, Any]]", n, "field(default_factory=" + n + ")", "json", n + ".read($ or {})"}
	default:
		return pythonForms[k]
	}
}

// made reports whether what a value is read as is another object than JSON's.
func (f pythonForm) made() bool { return strings.Contains(f.read, "(") }

// pythonOptional is the form of a value that may be absent.
func pythonOptional(f pythonForm) pythonForm {
	read := "$"
	if f.made() {
		read = f.read + " if $ is not None else None"
	}
	return pythonForm{f.Accepts, "Optional[" + f.Returns + "]", "None", f.Kind, read}
}

func pythonList(element reflect.Type) pythonForm {
	of := pythonFormOf(element)
	f := pythonForm{"Sequence[" + of.Accepts + "]", "list[" + of.Returns + "]", "field(default_factory=list)", "json", "list($ or ())"}
	if kindOf(element) == kindString {
		f.Kind = "strings"
	}
	if of.made() {
		f.read = "[" + strings.ReplaceAll(of.read, "$", "x") + " for x in $ or ()]"
	}
	return f
}

func pythonMap(element reflect.Type) pythonForm {
	of := pythonFormOf(element)
	f := pythonForm{"Mapping[str, " + of.Accepts + "]", "dict[str, " + of.Returns + "]", "field(default_factory=dict)", "json", "dict($ or {})"}
	if kindOf(element) == kindInteger {
		f.Kind = "amounts"
	}
	if of.made() {
		f.read = "{k: " + strings.ReplaceAll(of.read, "$", "x") + " for k, x in ($ or {}).items()}"
	}
	return f
}

// pythonWords are those of Python's reserved words that are not Go's and could name a
// field.
var pythonWords = []string{"and", "as", "class", "def", "del", "except", "finally", "from", "global", "in", "is", "lambda", "not", "or", "pass", "raise", "with", "yield"}

// pythonName is a name that Python does not reserve.
func pythonName(name string) string {
	if slices.Contains(pythonWords, name) || token.IsKeyword(name) {
		return name + "_"
	}
	return name
}

// pythonField is the name of a field in a class, which has a method read.
func pythonField(name string) string {
	if name == "read" {
		return name + "_"
	}
	return pythonName(name)
}

// pythonFuncs are what python.tmpl calls.
func (t *table) pythonFuncs() template.FuncMap {
	return template.FuncMap{
		"py": pythonFormOf, "pyName": pythonName, "pyField": pythonField, "docstring": docstring, "signature": signature,
		"pyRead": func(f field) string {
			return strings.ReplaceAll(pythonFormOf(f.Type).read, "$", fmt.Sprintf("o.get(%q)", f.Name))
		},
		"pyAnswer": func(m method) string {
			if !answers(m) {
				return "None"
			}
			return reflect.TypeOf(m.Result).Name()
		},
		"entries": func(params []field) string {
			return pairs(params, func(f field) string { return f.Name })
		},
		"named": func(params []field) string {
			return pairs(params, func(f field) string { return pythonName(f.Name) })
		},
	}
}

// answers reports whether a method's answer has content.
func answers(m method) bool { return kindOf(reflect.TypeOf(m.Result)) == kindObject }

// signature has the required parameters first; the others need their names.
func signature(params []field) string {
	words, optional := []string{"self"}, []string{"*"}
	for _, p := range params {
		accepts := pythonFormOf(p.Type).Accepts
		if p.Optional {
			optional = append(optional, pythonName(p.Name)+": Optional["+accepts+"] = None")
		} else {
			words = append(words, pythonName(p.Name)+": "+accepts)
		}
	}
	if len(optional) > 1 {
		words = append(words, optional...)
	}
	return spread("    ", words)
}

// pairs are the inside of a dict with the parameters, by the names that name gives.
func pairs(params []field, name func(field) string) string {
	var words []string
	for _, p := range params {
		words = append(words, fmt.Sprintf("%q: %s", name(p), pythonName(p.Name)))
	}
	return spread("        ", words)
}

// spread joins the parts of a list, on a line each where one line would be long.
func spread(indent string, parts []string) string {
	line := strings.Join(parts, ", ")
	if len(line) < 70 {
		return line
	}
	between := "\n" + indent + "    "
	return between + strings.Join(parts, ","+between) + ",\n" + indent
}

// docstring is a text with the parameters that have one of their own.
func docstring(indent, text string, params []field) string {
	lines := wrap(text, 85-len(indent))
	for _, p := range params {
		if p.Doc == "" {
			continue
		}
		if !slices.Contains(lines, "Args:") {
			lines = append(lines, "", "Args:")
		}
		lines = append(lines, "    "+pythonName(p.Name)+": "+p.Doc)
	}
	if len(lines) > 1 {
		lines = append(lines, "")
	}
	return strings.ReplaceAll(indent+`"""`+strings.Join(lines, "\n"+indent)+`"""`, "\n"+indent+"\n", "\n\n")
}
