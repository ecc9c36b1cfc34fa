package contract

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"clove.run/clove/api"
)

var (
	update   = flag.Bool("update", false, "accept what is new in the contract")
	breaking = flag.Bool("breaking", false, "with -update: also accept breaking changes of experimental methods")
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestContractIsKept compares the table with the contract that was accepted for its version.
func TestContractIsKept(t *testing.T) {
	t.Parallel()
	path := fmt.Sprintf("versions/%d.json", api.Version)
	accepted, err := Of(api.Version)
	if err != nil && !*update {
		t.Fatalf("%v: a new version begins with go test ./api/contract -update", err)
	}
	refused := false
	for _, change := range Diff(accepted, Current()) {
		if advice := adviceOn(change, err != nil, *update, *breaking); advice != "" {
			refused = true
			t.Errorf("%s %s. %s", change.Subject, change.What, advice)
		}
	}
	if *update && !refused {
		write(t, path, textOf(t, Current()))
	}
}

// adviceOn says what to do about a change that is not accepted; empty: it is.
func adviceOn(c Change, newVersion, update, breaking bool) string {
	switch {
	case newVersion:
		return ""
	case c.Breaking && c.Tier == api.Experimental && update && breaking:
		return ""
	case c.Breaking && c.Tier == api.Experimental:
		return "This breaks callers of an experimental method: put it back, or say so in CHANGELOG.md and accept it with go test ./api/contract -update -breaking"
	case c.Breaking:
		return "This breaks callers: put it back and add the new beside it, or raise api.Version, which begins another contract"
	case !update:
		return "This is an addition: accept it with go test ./api/contract -update"
	}
	return ""
}

func textOf(t *testing.T, c Contract) string {
	t.Helper()
	for i := range c.Methods {
		c.Methods[i].Doc = ""
	}
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// The accepted changes, and the hints for the others.
func TestAdvice(t *testing.T) {
	t.Parallel()
	lost := Change{Breaking: true, Tier: api.Stable}
	tried := Change{Breaking: true, Tier: api.Experimental}
	for _, row := range []struct {
		change                       Change
		newVersion, update, breaking bool
		want                         string // a part; empty: accepted
	}{
		{lost, false, false, false, "raise api.Version"},
		{lost, false, true, true, "raise api.Version"},
		{lost, true, true, false, ""},
		{tried, false, false, false, "CHANGELOG.md"},
		{tried, false, true, false, "-breaking"},
		{tried, false, true, true, ""},
		{Change{}, false, false, false, "-update"},
		{Change{}, false, true, false, ""},
	} {
		got := adviceOn(row.change, row.newVersion, row.update, row.breaking)
		if (got == "") != (row.want == "") || !strings.Contains(got, row.want) {
			t.Errorf("%+v: %q", row, got)
		}
	}
}

// Every version that there was is there, and can be read.
func TestVersionsAreThere(t *testing.T) {
	t.Parallel()
	for version := 1; version <= api.Version; version++ {
		if c, err := Of(version); err != nil || c.Version != version {
			t.Errorf("%d: %v, %v", version, c.Version, err)
		}
	}
	for _, version := range []int{-1, 0, api.Version + 1} {
		if _, err := Of(version); err == nil {
			t.Errorf("there is a version %d", version)
		}
	}
	for _, text := range []string{"", "{}", "[]", `{"version":1}`, `{"version":1,"methods":{}}`} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%q is a contract", text)
		}
	}
}

// A field without a name in JSON would have Go's, and one of the same path would hide another.
func TestEveryFieldHasAName(t *testing.T) {
	t.Parallel()
	check := func(subject string, fields Fields) {
		for path := range fields {
			for part := range strings.SplitSeq(path, ".") {
				if name := strings.TrimRight(part, "?[]{}"); path != whole && (name == "" || name == "-") {
					t.Errorf("%s: %q has a field without a name", subject, path)
				}
			}
		}
	}
	for _, m := range Current().Methods {
		check(m.Name, m.Params)
		check(m.Name, m.Result)
	}
	for _, n := range Current().Notifications {
		check(n.Name, n.Params)
	}
}
