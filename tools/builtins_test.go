package tools

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestBuiltins(t *testing.T) {
	var names []string
	for _, d := range Builtins() {
		names = append(names, d.Name)
		if found, known := Builtin(d.Name); !known || found.Description != d.Description {
			t.Errorf("%s is not found", d.Name)
		}
		if !regexp.MustCompile(`^[a-z]+$`).MatchString(d.Name) || d.Title == "" || d.Description == "" || len(d.Description) > MaxDescription || len(d.Arguments) > MaxSchema || d.Kind != KindBuiltin || d.Command != nil || d.Timeout > MaxTimeout {
			t.Errorf("%+v", d)
		}
		for _, schema := range []json.RawMessage{d.Arguments, d.Result} {
			if schema != nil && !json.Valid(schema) {
				t.Errorf("%s: a schema is no JSON: %s", d.Name, schema)
			}
		}
		if want := slices.Contains([]string{"exec", "fetch", "git"}, d.Name); d.Named != want {
			t.Errorf("%s: named is %t", d.Name, d.Named)
		}
		if a := d.Annotations; a.ReadOnly == nil || a.Destructive == nil || *a.ReadOnly && *a.Destructive {
			t.Errorf("%s: %+v", d.Name, a)
		}
	}
	if got := strings.Join(names, " "); got != "echo read write edit glob grep list exec fetch git" {
		t.Error(got)
	}
	if _, known := Builtin("delete"); known {
		t.Error("there is another one")
	}
}
