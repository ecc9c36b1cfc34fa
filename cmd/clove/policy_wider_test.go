package main

import (
	"slices"
	"testing"

	"clove.run/clove/agent"
)

// A place that learning has widened was used, and needs no line at each start; one with a reason of
// a person's does.
func TestLearnedPlacesAreQuiet(t *testing.T) {
	t.Parallel()
	for text, quiet := range map[string]bool{
		"network.allow (mine): used in the learned run box":                    true,
		"network.allow (mine): used in 3 learned runs, such as box":            true,
		"network.allow (mine): the build needs it":                             false,
		"network.allow (mine): not used in the learned run box, but by others": false,
	} {
		places := widerPlaces(agent.Policy{Name: "mine", Widened: []string{text, "limits.memory (mine): used in the learned run box"}})
		if quiet != (len(places) == 0) || slices.Contains(places, "limits.memory") {
			t.Errorf("%s: %q", text, places)
		}
	}
}
