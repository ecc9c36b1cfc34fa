package runtime

import (
	"slices"
	"testing"

	"clove.run/clove/rootfs"
)

func TestConsentWithholdsWhatExecutes(t *testing.T) {
	t.Parallel()
	changes := []rootfs.Change{{Path: "/workspace/a"}, {Path: "/workspace/.envrc", ExecutedBy: "direnv"}, {Path: "/workspace/.git/config", ExecutedBy: "git"},
		{Path: "/workspace/AGENTS.md", Instructs: "agents"}, {Path: "/workspace/.new/x", Unknown: "new"}}
	const envrc, config, agents, unknown = "/workspace/.envrc", "/workspace/.git/config", "/workspace/AGENTS.md", "/workspace/.new/x"
	for name, row := range map[string]struct {
		consent  Consent
		withheld []string
	}{
		"yes":          {Consent{Apply: true}, []string{envrc, config, agents, unknown}},
		"yes to two":   {Consent{Apply: true, Each: []string{envrc, agents, "/workspace/a"}}, []string{config, unknown}},
		"executable":   {Consent{Apply: true, ExecutableConfig: true}, []string{agents}},
		"instructions": {Consent{Apply: true, Instructions: true}, []string{envrc, config, unknown}},
		"all":          {Consent{Apply: true, ExecutableConfig: true, Instructions: true}, nil},
	} {
		var withheld []string
		for _, c := range row.consent.withhold(changes) {
			if c.Refused != "" {
				withheld = append(withheld, c.Path)
			}
		}
		if !slices.Equal(withheld, row.withheld) {
			t.Errorf("%s: %q", name, withheld)
		}
	}
	if changes[1].Refused != "" {
		t.Error("the caller's list was changed")
	}
}
