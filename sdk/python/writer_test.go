package python

import (
	"encoding/json"
	"fmt"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// row is a method as the module has it.
type row struct {
	api.Method
	noun, verb string
	params     []param
}

// param is a parameter of a method.
type param struct {
	name     string // in JSON
	python   string
	t        reflect.Type
	optional bool
	doc      string
}

// keyed reports whether the call has a key by which its repetition is recognised.
func (r row) keyed() bool {
	return slices.ContainsFunc(r.params, func(p param) bool { return p.name == "key" })
}

// writer makes the module.
type writer struct {
	strings.Builder
	rows     []row
	comments comments
	written  map[reflect.Type]bool // types that have their class
	public   []string              // names that users import
}

func newWriter(t *testing.T) *writer {
	t.Helper()
	w := &writer{comments: readComments(t), written: map[reflect.Type]bool{}}
	for _, m := range methods.All() {
		if !m.ForAgents() || m.Name == agents.AgentListen.Name { // listening is written by hand
			continue
		}
		noun, verb, _ := strings.Cut(m.Name, ".")
		w.rows = append(w.rows, row{m, noun, verb, w.paramsOf(reflect.TypeOf(m.Params))})
	}
	return w
}

func (w *writer) line(format string, values ...any) { fmt.Fprintf(w, format+"\n", values...) }

// fieldsOf returns the fields that an object of the type has in JSON.
func fieldsOf(t reflect.Type) []reflect.StructField {
	var all []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Anonymous && tag == "" {
			all = append(all, fieldsOf(f.Type)...)
			continue
		}
		all = append(all, f)
	}
	return all
}

func jsonName(f reflect.StructField) string {
	tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return tag
}

// paramsOf returns the parameters, without the run: an agent calls for itself.
func (w *writer) paramsOf(t reflect.Type) []param {
	var all []param
	for _, f := range fieldsOf(t) {
		tag := jsonName(f)
		if tag == "run" {
			continue
		}
		p := param{tag, safe(tag), f.Type, strings.Contains(f.Tag.Get("json"), ",omit"), w.comments.field(t, f)}
		if tag == "key" {
			p.doc = "the same key gets the same answer again; a random one by default"
		}
		all = append(all, p)
	}
	return all
}

// class writes the class of an answer, after those of its parts.
func (w *writer) class(value any) { w.classOf(reflect.TypeOf(value)) }

func (w *writer) classOf(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() || w.written[t] {
		return
	}
	w.written[t] = true
	all := fieldsOf(t)
	for _, f := range all {
		w.classOf(f.Type)
	}
	w.public = append(w.public, t.Name())
	w.line("\n@dataclass(frozen=True)\nclass %s:", t.Name())
	w.docstring("    ", w.comments.of(t), nil)
	w.line("")
	for _, f := range all {
		doc := w.comments.field(t, f)
		if doc != "" {
			doc = "  # " + doc
		}
		w.line("    %s: %s = %s%s", safe(jsonName(f)), formOf(f.Type).returns, formOf(f.Type).zero, doc)
	}
	w.line("\n    @classmethod\n    def read(cls, o: Mapping[str, Any]) -> %s:\n        return cls(", t.Name())
	for _, f := range all {
		w.line("            %s=%s,", safe(jsonName(f)), strings.ReplaceAll(formOf(f.Type).read, "$", fmt.Sprintf("o.get(%q)", jsonName(f))))
	}
	w.line("        )\n")
}

// docstring writes a text, and the parameters that have one of their own.
func (w *writer) docstring(indent, text string, params []param) {
	lines := wrap(text, 85-len(indent))
	documented := slices.DeleteFunc(slices.Clone(params), func(p param) bool { return p.doc == "" })
	for i, p := range documented {
		if i == 0 {
			lines = append(lines, "", "Args:")
		}
		lines = append(lines, "    "+p.python+": "+p.doc)
	}
	if len(lines) == 1 {
		w.line("%s\"\"\"%s\"\"\"", indent, lines[0])
		return
	}
	w.line("%s\"\"\"%s", indent, lines[0])
	for _, line := range lines[1:] {
		w.line("%s", strings.TrimRight(indent+line, " "))
	}
	w.line("%s\"\"\"", indent)
}

// wrap breaks a text into lines.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	return append(lines, line)
}

// pythonWords are those of Python's reserved words that are not Go's and could name a
// field.
var pythonWords = []string{"and", "as", "class", "def", "del", "except", "finally", "from", "global", "in", "is", "lambda", "not", "or", "pass", "raise", "with", "yield"}

// safe is a name that Python does not reserve.
func safe(name string) string {
	if slices.Contains(pythonWords, name) || token.IsKeyword(name) {
		return name + "_"
	}
	return name
}

func capital(text string) string {
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

func name(value any) string { return reflect.TypeOf(value).Name() }

func truth(b bool) string { return capital(fmt.Sprint(b)) }

// literal is a text as Python writes it: JSON's strings are Python's.
func literal(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		return `""` // a string always encodes
	}
	return string(data)
}
