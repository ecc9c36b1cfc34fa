package main

import (
	"embed"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/policies"
	"clove.run/clove/policies/resolve"
)

//go:embed *.tmpl
var templates embed.FS

// draw returns the text of the template with this name.
func (t *table) draw(name string) (string, error) {
	funcs := template.FuncMap{
		"capital": capital, "literal": literal, "exception": exception, "nouns": nouns, "ofNoun": ofNoun, "answers": answers,
		"fields": t.fieldsOf, "comment": t.comments.of, "typeOf": reflect.TypeOf,
		"words": words, "who": func(a api.Access) string { return who[a] }, "typeName": typeName,
		"isAny": func(of reflect.Type) bool { return kindOf(of) == kindAny },
	}
	maps.Copy(funcs, t.pythonFuncs())
	maps.Copy(funcs, t.scriptFuncs())
	all, err := template.New("").Funcs(funcs).ParseFS(templates, "*.tmpl")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = all.ExecuteTemplate(&text, name, t)
	return text.String(), err
}

// These are read by templates, besides the methods of the API.

func (t *table) Version() int                      { return api.Version }
func (t *table) MaxLine() int                      { return api.MaxAgentLine }
func (t *table) Codes() any                        { return api.Codes }
func (t *table) CommonErrors() []api.Code          { return api.CommonErrors }
func (t *table) Methods() api.Table                { return methods.All() }
func (t *table) Notifications() []api.Notification { return api.Notifications }

// Notes are the notifications of agent.listen.
func (t *table) Notes() []api.Notification {
	return slices.DeleteFunc(slices.Clone(api.Notifications), func(n api.Notification) bool { return !n.ForAgent })
}

// Standard is the spec of a run of the level standard as JSON, without its command and its name.
func (t *table) Standard() (string, error) {
	spec := policies.Standard()
	spec.Env = []string{"HOME=" + spec.User.Home, "LANG=C.UTF-8", "PATH=" + resolve.PATH}
	text, err := json.Marshal(spec)
	return string(text), err
}

// nouns returns the nouns of methods in their order.
func nouns(all []method) []string {
	var found []string
	for _, m := range all {
		if !slices.Contains(found, m.Noun) {
			found = append(found, m.Noun)
		}
	}
	return found
}

func ofNoun(all []method, noun string) []method {
	return slices.DeleteFunc(slices.Clone(all), func(m method) bool { return m.Noun != noun })
}

// exception is the class of an error word: NotFoundError of not-found.
func exception(word string) string {
	var name strings.Builder
	for part := range strings.SplitSeq(word, "-") {
		name.WriteString(capital(part))
	}
	return name.String() + "Error"
}

// literal is a text as Python and JavaScript write it: JSON's strings are theirs.
func literal(text string) (string, error) {
	data, err := json.Marshal(text)
	return string(data), err
}

func capital(text string) string {
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
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
