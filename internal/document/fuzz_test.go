package document

import (
	"reflect"
	"testing"

	"clove.run/clove/agent"
)

// Whatever is decoded, an error is one of a document, and the same text gives the same value.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"text: a\n", "one: {number: 7}\nmany: [{text: b}]\n", "named: {x: {text: c}}\n", "any: {what: [{ever: 0x10}]}\n", "text: &a b\none: *a\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second tree
		err := Decode(text, &first)
		if err != nil && agent.KindOf(err) != agent.KindInvalid {
			t.Fatal(err)
		}
		if again := Decode(text, &second); (err == nil) != (again == nil) || !reflect.DeepEqual(first, second) {
			t.Fatalf("%v, then %v", err, again)
		}
	})
}
