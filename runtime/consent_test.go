package runtime

import (
	"slices"
	"testing"

	"clove.run/clove/rootfs"
)

func TestConsentWithholdsWhatExecutes(t *testing.T) {
	t.Parallel()
	changes := []rootfs.Change{{Path: "/workspace/a"}, {Path: "/workspace/.envrc", ExecutedBy: "direnv"}, {Path: "/workspace/.git/config", ExecutedBy: "git"}}
	for name, row := range map[string]struct {
		consent  Consent
		withheld []string
	}{
		"yes":         {Consent{Apply: true}, []string{"/workspace/.envrc", "/workspace/.git/config"}},
		"yes to one":  {Consent{Apply: true, Executable: []string{"/workspace/.envrc", "/workspace/a"}}, []string{"/workspace/.git/config"}},
		"yes to each": {Consent{Apply: true, ExecutableConfig: true}, nil},
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
