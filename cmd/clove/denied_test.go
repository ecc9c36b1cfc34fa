package main

import (
	"testing"

	"clove.run/clove/agent"
)

// Each kind of denial has a word for people.
func TestEachKindOfDenialHasAWord(t *testing.T) {
	t.Parallel()
	for _, kind := range agent.DenialKinds {
		if deniedKinds[kind] == "" {
			t.Errorf("%s has none", kind)
		}
	}
}
