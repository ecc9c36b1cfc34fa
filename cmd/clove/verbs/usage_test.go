package verbs

import (
	"reflect"
	"slices"
	"testing"
)

// A usage line says what its command takes.
func TestParse(t *testing.T) {
	t.Parallel()
	takesValue := func(flag string) bool { return flag == "--out" }
	for line, want := range map[string]Usage{
		"clove pause NAME|ID...":                          {Args: []Arg{{Name: "NAME|ID", Text: "NAME|ID...", Many: true}}},
		"clove grant give [--uses N] [-q] AGENT GRANT":    {Flags: []string{"--uses", "-q"}, Args: []Arg{{Name: "AGENT", Text: "AGENT"}, {Name: "GRANT", Text: "GRANT"}}},
		"clove budget report [--from DAY] [--csv|--json]": {Flags: []string{"--from", "--csv", "--json"}},
		"clove budget list [ACCOUNT]":                     {Args: []Arg{{Name: "ACCOUNT", Text: "[ACCOUNT]", Optional: true}}},
		"clove stats [NAME|ID...]":                        {Args: []Arg{{Name: "NAME|ID", Text: "[NAME|ID...]", Optional: true, Many: true}}},
		"clove policy learn --merge --out FILE SEEN...":   {Flags: []string{"--merge", "--out"}, Args: []Arg{{Name: "SEEN", Text: "SEEN...", Many: true}}},
		"clove policy diff A B":                           {Args: []Arg{{Name: "A", Text: "A"}, {Name: "B", Text: "B"}}},
		"clove bench plan [--filter PATTERN]... SUITE":    {Flags: []string{"--filter"}, Args: []Arg{{Name: "SUITE", Text: "SUITE"}}},
		"clove bench import harbor [flags] DIR[:AGENT]":   {Args: []Arg{{Name: "harbor", Text: "harbor"}, {Name: "DIR[:AGENT]", Text: "DIR[:AGENT]"}}},
	} {
		if got := Parse(line, takesValue); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, want\n%+v", line, got, want)
		}
	}
}

func TestTakes(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]int{
		"clove x": {0}, "clove x A": {1}, "clove x A [B]": {1, 2}, "clove x [A...]": {0, 1, 2, 3}, "clove x A B...": {2, 3},
	} {
		for count := range 4 {
			if got := Parse(line, nil).Takes(count); got != slices.Contains(want, count) {
				t.Errorf("%s takes %d: %v", line, count, got)
			}
		}
	}
}
