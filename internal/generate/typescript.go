package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"clove.run/clove/api"
)

// scriptFuncs are what typescript.tmpl calls.
func (t *table) scriptFuncs() template.FuncMap {
	inputs := t.Inputs()
	return template.FuncMap{
		"ts": typeScriptOf, "camel": camel, "jsdoc": jsdoc, "tsInput": input, "tsAnswer": scriptAnswer,
		"tsField": func(of reflect.Type, f field) string { return scriptField(of, f, slices.Contains(inputs, of)) },
		// The lists of an answer that are always there. Go writes an empty one as null.
		"lists": func(m method) string {
			var names []string
			if answers(m) {
				for _, f := range t.fieldsOf(reflect.TypeOf(m.Result)) {
					if kindOf(f.Type) == kindList && !f.Optional {
						names = append(names, "\""+f.Name+"\"")
					}
				}
			}
			return strings.Join(names, ", ")
		},
	}
}

// jsdoc is a documentation comment, with the end of its last line.
func jsdoc(indent, text string) string {
	if text == "" {
		return ""
	}
	lines := wrap(strings.ReplaceAll(text, "*/", "*\\/"), 96-len(indent))
	if len(lines) == 1 {
		return indent + "/** " + lines[0] + " */\n"
	}
	return indent + "/**\n" + indent + " * " + strings.Join(lines, "\n"+indent+" * ") + "\n" + indent + " */\n"
}

var typeScriptKinds = map[kind]string{
	kindAny: "unknown", kindBool: "boolean", kindString: "string", kindAddress: "string", kindInteger: "number", kindNumber: "number",
	kindTime: "Time", kindBytes: "Base64", kindNothing: "void",
}

func typeScriptOf(t reflect.Type) string {
	switch k := kindOf(t); k {
	case kindPointer:
		return typeScriptOf(t.Elem())
	case kindList:
		return typeScriptOf(t.Elem()) + "[]"
	case kindMap:
		return "{ [key: string]: " + typeScriptOf(t.Elem()) + " }" // Record is a type of the API
	case kindObject:
		return t.Name()
	default:
		return typeScriptKinds[k]
	}
}

// scriptField is the type of a field. Times of parameters may be dates. Go writes an empty list as
// null, which a client replaces at the top of an answer only.
func scriptField(of reflect.Type, f field, parameter bool) string {
	text := typeScriptOf(f.Type)
	switch k := kindOf(f.Type); {
	case parameter && k == kindTime:
		return text + " | Date"
	case (k == kindList || k == kindMap) && !f.Optional && !parameter && !strings.HasSuffix(of.Name(), "Result"):
		return text + " | null"
	}
	return text
}

// input is the first parameter of a method. An agent's has no run.
func input(m method) string {
	name := reflect.TypeOf(m.Method.Params).Name()
	if m.ForAgents() && !m.has("run") {
		name = "Omit<" + name + `, "run">`
	}
	switch {
	case len(m.Params) == 0:
		return "params?: NoParams"
	case !slices.ContainsFunc(m.Params, func(p field) bool { return !p.Optional }):
		return "params?: " + name
	}
	return "params: " + name
}

func scriptAnswer(m method) string {
	result, note := typeScriptOf(reflect.TypeOf(m.Result)), "unknown"
	if m.Note != nil {
		note = typeScriptOf(m.Note)
	}
	switch m.Shape {
	case api.ShapeStream:
		return fmt.Sprintf("Stream<%s, %s>", note, result)
	case api.ShapeSession:
		return fmt.Sprintf("Session<%s>", result)
	}
	return fmt.Sprintf("Promise<%s>", result)
}

// camel is a name as JavaScript has it: copyIn of copy_in.
func camel(name string) string {
	first, rest, more := strings.Cut(name, "_")
	for more {
		var part string
		part, rest, more = strings.Cut(rest, "_")
		first += capital(part)
	}
	return first
}
