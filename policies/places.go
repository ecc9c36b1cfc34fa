package policies

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"clove.run/clove/internal/document"
)

// TopKeys are the keys at the top of a document that hold values of a run.
var TopKeys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return strings.Contains(key, ".") })

// Meant is a hint that names what was probably meant; otherwise it is the other text.
func Meant(word string, known []string, otherwise string) string {
	return document.Meant(word, known, otherwise)
}

// keys are the places of a document that widen may name: each key with values, and what
// holds such keys.
var keys = placesOf("", reflect.TypeFor[Document]())

// headKeys are the keys that say what a document is; all others are values of a run.
var headKeys = []string{"version", "name", "description", "extends", "widen"}

func placesOf(at string, t reflect.Type) (all []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if at == "" && slices.Contains(headKeys, name) {
			continue
		}
		all = append(all, at+name)
		if inner := t.Field(i).Type; inner.Kind() == reflect.Struct {
			all = append(all, placesOf(at+name+".", inner)...)
		}
	}
	return all
}

func isKey(key string) bool { return slices.Contains(keys, key) || strings.HasPrefix(key, "ulimits.") }

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
	value := reflect.ValueOf(d)
	for part := range strings.SplitSeq(place, ".") {
		if value.Kind() == reflect.Map {
			return value.MapIndex(reflect.ValueOf(part)).IsValid()
		}
		found := false
		for i := range value.NumField() {
			if name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ","); name == part {
				value, found = value.Field(i), true
				break
			}
		}
		if !found {
			return false
		}
	}
	return !value.IsZero()
}

// Value is one key of a document with its value as it is written; a list is joined by commas.
type Value struct{ Key, Text string }

// Values are the values of a run that the document has, in the order of its form.
func (d Document) Values() []Value { return valuesOf("", reflect.ValueOf(d)) }

func valuesOf(at string, of reflect.Value) (all []Value) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
		field, key := of.Field(i), at+name
		switch {
		case field.IsZero() || at == "" && slices.Contains(headKeys, name):
		case field.Kind() == reflect.Struct:
			all = append(all, valuesOf(key+".", field)...)
		case field.Kind() == reflect.Map:
			var entries []Value
			for k, v := range field.Seq2() {
				entries = append(entries, Value{key + "." + k.String(), v.String()})
			}
			slices.SortFunc(entries, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
			all = append(all, entries...)
		case field.Kind() == reflect.Slice:
			var items []string
			for j := range field.Len() {
				items = append(items, fmt.Sprint(field.Index(j)))
			}
			all = append(all, Value{key, strings.Join(items, ", ")})
		case field.Kind() == reflect.Pointer:
			all = append(all, Value{key, fmt.Sprint(field.Elem())})
		default:
			all = append(all, Value{key, field.String()})
		}
	}
	return all
}
