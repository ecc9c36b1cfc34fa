package document

import (
	"strings"
	"testing"
)

// tree has what files have: embedded fields, pointers, lists, maps, and a value of any form.
type tree struct {
	leaf
	One   *leaf           `json:"one"`
	Many  []leaf          `json:"many"`
	Named map[string]leaf `json:"named"`
	Any   any             `json:"any"`

	Hidden string // no key, as it has no tag
}

type leaf struct {
	Text   string `json:"text,omitempty"`
	Number int64  `json:"number"`
}

func TestDecode(t *testing.T) {
	t.Parallel()
	var got tree
	err := Decode([]byte("text: a\none: {number: 7}\nmany: [{text: b}]\nnamed: {x: {text: c}}\nany: {what: [{ever: 1}]}\n"), &got)
	if err != nil || got.Text != "a" || got.One.Number != 7 || got.Many[0].Text != "b" || got.Named["x"].Text != "c" || got.Any == nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := Decode([]byte("\ufefftext: after\n"), &got); err != nil || got.Text != "after" {
		t.Errorf("behind a byte order mark: %+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"one: {txt: a}":             `one: there is no key "txt"`,
		"many: [{}, {nmber: 1}]":    `many.1: there is no key "nmber"`,
		"named: {x: {z: 1}}":        `named.x: there is no key "z"`,
		"Hidden: a":                 `there is no key "Hidden"`,
		"leaf: {}":                  `there is no key "leaf"`,
		"Text: a":                   `there is no key "Text"`,
		"named: {x: {}, x: {}}":     `line 1, column 16: named: the key "x" stands in line 1 already`,
		"many: {text: a}":           "many: a map stands where a list belongs",
		"text: [a]":                 "text: a list stands where text belongs",
		"one: {number: 1e99}":       "line 1, column 15: one.number: the number 1e99 stands where a whole number belongs",
		"one: {number: 1.5}":        "number: the number 1.5 stands where a whole number belongs",
		"text: &a [*a]":             "anchors are not read here",
		"text: !!binary Zg==\na: 1": "values of the type !!binary are not read here",
		"text: a\n---\ntext: b":     "line 2: there is a second document",
		"text: a\none:\n  - 1":      "line 3, column 3: one: a list stands where a map of keys belongs",
		"many: !!python/object/apply:os.system [x]": "line 1, column 7: many: values of the type !!python/object/apply:os.system are not read here",
		"one: !!set {text: a}":                      "values of the type !!set are not read here",
		"!!python/name:os.system text: a":           "anchors and tags of keys are not read here",
		"&a text: a":                                "anchors and tags of keys are not read here",
		"one: {<<: {text: a}}":                      `there is no key "<<"`,
		"text: \xff":                                "it is no text in UTF-8",
		"\xff\xfet\x00:\x00 \x00a\x00":              "it is no text in UTF-8", // UTF-16
		"[a]":                                       "a list stands where a map of keys belongs",
		"text: [":                                   "did not find expected node content",
		"many:\n  - number: 1\n  - numbr: 1":        `line 3, column 5: many.1: there is no key "numbr"`,
	} {
		if err := Decode([]byte(text), new(tree)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
