package policies

import (
	"slices"
	"strings"
	"sync"

	"clove.run/clove/internal/document"
	"clove.run/clove/policies/settings"
)

// keys are the places of a document that widen may name: each key with values, and what
// holds such keys.
var keys = sync.OnceValue(func() (all []string) {
	for i := range settings.All() {
		key := settings.All()[i].Key
		holder, _, nested := strings.Cut(key, ".")
		if nested && !slices.Contains(all, holder) {
			all = append(all, holder)
		}
		if key != "" {
			all = append(all, key)
		}
	}
	return all
})

// TopKeys returns the keys at the top of a document that hold values of a run.
func TopKeys() []string {
	return slices.DeleteFunc(slices.Clone(keys()), func(key string) bool { return strings.Contains(key, ".") })
}

// Meant is a hint that names what was probably meant; otherwise it is the other text.
func Meant(word string, known []string, otherwise string) string {
	return document.Meant(word, known, otherwise)
}

func isKey(key string) bool {
	return slices.Contains(keys(), key) || strings.HasPrefix(key, "ulimits.")
}

// Reason returns the reason that widen gives for a place, by its own name or that of what
// holds it.
func (d Document) Reason(place string) string {
	for at := place; at != ""; {
		if reason := d.Widen[at]; reason != "" {
			return reason
		}
		cut := strings.LastIndex(at, ".")
		at = at[:max(cut, 0)]
	}
	return ""
}

// Names reports whether the document has a value at a place or below it: network.mode, or
// network.
func (d Document) Names(place string) bool {
	return slices.ContainsFunc(d.Written(), func(v Value) bool { return v.Key == place || strings.HasPrefix(v.Key, place+".") })
}

// Value is one key of a document with its value as it is written; a list is joined by commas.
type Value struct {
	Key  string `col:"KEY"`
	Text string `col:"VALUE"`
}

// Written are the values of a run that the document has, in the order of its form. An entry of
// a map has a key of its own.
func (d Document) Written() (all []Value) {
	for i := range settings.All() {
		s := &settings.All()[i]
		texts, has := d.Values[s.Name()]
		switch {
		case !has || s.Key == "":
		case s.Form == settings.Map || s.Form == settings.Amounts:
			for _, entry := range texts {
				name, text, _ := strings.Cut(entry, "=")
				all = append(all, Value{s.Key + "." + name, text})
			}
		default:
			all = append(all, Value{s.Key, strings.Join(texts, ", ")})
		}
	}
	return all
}
