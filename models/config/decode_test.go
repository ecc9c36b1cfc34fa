package config

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
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
	for text, want := range map[string]string{
		"one: {txt: a}":             `one: there is no key "txt"`,
		"many: [{}, {nmber: 1}]":    `many.1: there is no key "nmber"`,
		"named: {x: {z: 1}}":        `named.x: there is no key "z"`,
		"Hidden: a":                 `there is no key "Hidden"`,
		"leaf: {}":                  `there is no key "leaf"`,
		"Text: a":                   `there is no key "Text"`,
		"named: {x: {}, x: {}}":     "already set",
		"many: {text: a}":           "many: a map stands where a list belongs",
		"text: [a]":                 "text: a list stands where text belongs",
		"one: {number: 1e99}":       "number: the number 1e+99 stands where a whole number belongs",
		"one: {number: 1.5}":        "number: the number 1.5 stands where a whole number belongs",
		"text: &a [*a]":             "contains itself",
		"text: !!binary Zg==\na: 1": `there is no key "a"`,
	} {
		if err := Decode([]byte(text), new(tree)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"family", "groups", "key", "limits", "timeouts", "url", "users"}
	for word, want := range map[string]string{
		"famly": "family", "user": "users", "uri": "url", "limit": "limits", "time_outs": "timeouts",
		"kee": "key", "password": "", "": "", "groupings": "groups", strings.Repeat("x", 500): "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

// The distance is a metric: only equal words have none, and a detour is never shorter.
func TestDistanceIsAMetric(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[abc]{0,6}")
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		switch ab := distance(a, b); {
		case ab != distance(b, a), (ab == 0) != (a == b), ab > max(len(a), len(b)):
			t.Fatalf("%q to %q is %d", a, b, ab)
		case ab > distance(a, c)+distance(c, b):
			t.Fatalf("%q to %q is shorter by %q", a, b, c)
		}
	})
}
