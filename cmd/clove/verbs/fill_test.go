package verbs

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

type named struct{ Run string }

type text string

type params struct {
	named
	Kind   text
	Force  bool
	Limits []string
	Count  *int
	Least  *int
}

func TestFill(t *testing.T) {
	t.Parallel()
	wrong := errors.New("not a number")
	inputs := map[string]Input{
		"NAME": {Field: "Run"}, "KIND": {Field: "Kind", Read: One(func(s string) (text, error) { return text(s), nil })}, "LIMIT": {Field: "Limits"}, "--force": {Field: "Force"}, "--lost": {Field: "Nothing"}, "--json": {},
		"--least": {Field: "Least", Read: One(strconv.Atoi)},
		"--count": {Field: "Count", Read: One(func(s string) (*int, error) {
			n, err := strconv.Atoi(s)
			if err != nil {
				return nil, wrong
			}
			return &n, nil
		})},
	}
	two := 2
	var got params
	err := Fill(&got, inputs, []Given{{"NAME", []string{"one"}}, {"KIND", []string{"k"}}, {"LIMIT", []string{"a", "b"}}, {"--force", []string{"true"}}, {"--count", []string{"2"}}, {"--least", []string{"2"}}, {"--json", []string{"true"}}, {"--lost", nil}})
	if want := (params{named{"one"}, "k", true, []string{"a", "b"}, &two, &two}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := Fill(&got, inputs, []Given{{"--count", []string{"two"}}}); !errors.Is(err, wrong) {
		t.Error(err)
	}
	if err := Fill(&got, inputs, []Given{{"--lost", []string{"x"}}}); err == nil || !strings.Contains(err.Error(), "no field Nothing") {
		t.Error(err)
	}
	// A flag without a row is not ignored; a placeholder may be read otherwise.
	if err := Fill(&got, inputs, []Given{{"OTHER", []string{"x"}}, {"--other", []string{"x"}}}); err == nil || !strings.Contains(err.Error(), "--other has no row") {
		t.Error(err)
	}
	if err := Set(&got, "Force", 3); err == nil {
		t.Error("a number became a switch")
	}
}
