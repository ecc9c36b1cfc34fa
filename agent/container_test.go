package agent

import (
	"strings"
	"testing"
)

// TestAContainersNameIsNoAgents: no agent can have the name of a container's run, or the
// reverse, whatever an engine's ids look like.
func TestAContainersNameIsNoAgents(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("3f2a", 16)
	for id, want := range map[string]string{
		"one":                    "oci+one",
		digest:                   "oci+3f2a3f2a3f2a",
		digest[:63] + "X":        "oci+" + digest[:40],
		strings.Repeat("a", 200): "oci+" + strings.Repeat("a", 40),
	} {
		c := Container{ID: id, Directory: "/run/x/" + id}
		if got := c.Name(); got != want || !c.RunID().Valid() || c.Validate() != nil {
			t.Errorf("%s: %s, %s, %v", id, got, c.RunID(), c.Validate())
		}
		for _, name := range []string{c.Name(), c.LongName()} {
			if ValidateName(name) == nil {
				t.Errorf("an agent may be called %s", name)
			}
		}
		there := Container{ID: id, Directory: "/run/y/" + id}
		if c.RunID() == there.RunID() || c.LongName() == there.LongName() {
			t.Errorf("%s in two directories is one", id)
		}
	}
}

func TestAContainerThatNoEngineHas(t *testing.T) {
	t.Parallel()
	for _, c := range []Container{
		{}, {ID: "one"}, {ID: "one", Directory: "run"}, {ID: "", Directory: "/run"}, {ID: "a b", Directory: "/run"}, {ID: "a\x1b[2J", Directory: "/run"},
		{ID: strings.Repeat("a", 1025), Directory: "/run"}, {ID: "one", Directory: "/" + strings.Repeat("a", 4095)},
	} {
		if KindOf(c.Validate()) != KindInvalid || c.Validate() == nil {
			t.Errorf("%.80v is one", c)
		}
	}
}

func TestOnlyOnesOwnRuns(t *testing.T) {
	t.Parallel()
	if err := (Run{}).CheckOwn(); err != nil {
		t.Error(err)
	}
	err := Run{Spec: Spec{Name: "oci+one"}, Container: &Container{ID: "one"}}.CheckOwn()
	if KindOf(err) != KindConflict || err == nil || !strings.Contains(err.Error(), "oci+one") {
		t.Error(err)
	}
}
