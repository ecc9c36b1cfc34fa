package resolve

import (
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// A label is kept where the spec allows no more than what it names, with the digest of that; else
// the run is custom, and says what the caller claimed.
func TestLabelsAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"site": "version: 1\nname: site\nlimits: {memory: 64M}\n", "broken": "version: 1\nname: other"} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.Current()
	if err != nil {
		t.Fatal(err)
	}
	h.Policies = []string{dir}
	as := func(policy string, changes ...func(*agent.Spec)) agent.Spec {
		found, err := LoadPolicy(policy, h)
		if err != nil {
			t.Fatal(err)
		}
		spec := found.Spec
		spec.Policy.SHA256 = "000"
		for _, change := range changes {
			change(&spec)
		}
		return spec
	}
	named := func(name string) func(*agent.Spec) { return func(s *agent.Spec) { s.Policy.Name = name } }
	less := func(s *agent.Spec) { s.Limits.MemoryBytes = 32 << 20; s.Limits.MemorySwapBytes = 32 << 20 }
	more := func(s *agent.Spec) { s.Limits.Pids *= 2 }
	for _, row := range []struct {
		spec          agent.Spec
		name, claimed string
	}{
		{as("standard"), "standard", ""},
		{as("minimal"), "minimal", ""},
		{as("site"), "site", ""},
		{as("site", less), "site", ""},
		{as("minimal", named("standard")), "standard", ""}, // it allows less
		{as("standard", named("minimal")), agent.PolicyCustom, "minimal"},
		{as("standard", named("site")), agent.PolicyCustom, "site"},
		{as("site", more), agent.PolicyCustom, "site"},
		{as("standard", named("nowhere")), agent.PolicyCustom, "nowhere"},
		{as("standard", named("broken")), agent.PolicyCustom, "broken"},
		{as("standard", named(filepath.Join(dir, "site.yaml"))), agent.PolicyCustom, filepath.Join(dir, "site.yaml")},
		{as("standard", named(agent.PolicyCustom), func(s *agent.Spec) { s.Policy.Claimed = "minimal" }), agent.PolicyCustom, "minimal"},
		{as("site", named(agent.PolicyCustom), func(s *agent.Spec) { s.Policy.Claimed = "site" }), "site", ""},
		{as("standard", named("")), agent.PolicyCustom, ""},
		{as("standard", named("host")), agent.PolicyCustom, "host"},
	} {
		got, err := Label(row.spec, dir)
		if err != nil || got.Name != row.name || got.Claimed != row.claimed || (len(got.SHA256) == 64) != (row.name != agent.PolicyCustom) {
			t.Errorf("%q: %+v, %v, want %s and %q", row.spec.Policy.Name, got, err, row.name, row.claimed)
		}
	}
}
