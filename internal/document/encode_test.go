package document

import (
	"reflect"
	"testing"
)

type encoded struct {
	Name  string            `json:"name"`
	Lists [][]string        `json:"lists,omitempty"`
	Map   map[string]string `json:"map,omitempty"`
	Many  []encoded         `json:"many,omitempty"`
	One   *encoded          `json:"one,omitempty"`
	N     float64           `json:"n,omitempty"`
	B     bool              `json:"b,omitempty"`
}

// A written value is read back as it was.
func TestEncodedIsDecoded(t *testing.T) {
	t.Parallel()
	of := encoded{Name: "a: b # c\n\ttwo\x00é😀\"'{x}", Lists: [][]string{{"sh", "-c", "x, y\nz"}, {"- a"}}, Map: map[string]string{"NO": "yes", "yes": "1", "é": "null", "": "x"},
		Many: []encoded{{Name: ""}, {Name: "x", N: 1.5, Many: []encoded{{Name: "deep", B: true}}}}, One: &encoded{Name: "~"}}
	text, err := Encode(of)
	if err != nil {
		t.Fatal(err)
	}
	var back encoded
	if err := Decode(text, &back); err != nil || !reflect.DeepEqual(of, back) {
		t.Errorf("%v\n%s\n%+v", err, text, back)
	}
}
