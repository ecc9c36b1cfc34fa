package main

import (
	"maps"
	"testing"
)

const debugText = `clove:    2.000 ms  prepare    2.000 ms
stage
overlay / on skel, ids 0:1879048192:65536, upper 0
clove:    8.000 ms  rootfs     5.500 ms
clove:   20.000 ms  start      12.000 ms
clove:   20.500 ms  orders     0.100 ms
clove:   30.000 ms  teardown   2.500 ms
clove:   31.000 ms  record     1.000 ms
`

func TestParseStepsTakesTheAgentForWhatLiesBetween(t *testing.T) {
	want := map[string]float64{"prepare": 2, "rootfs": 5.5, "start": 12, "orders": 0.1, agentStep: 7, "teardown": 2.5, "record": 1}
	if got := parseSteps([]byte(debugText)); !maps.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestParseStepsLeavesOtherLines(t *testing.T) {
	for _, text := range []string{"", "clove: error: no", "clove: 1.2.3 ms  prepare 1 ms", "said by the agent: clove: 1 ms x 1 ms"} {
		if got := parseSteps([]byte(text)); len(got) != 0 {
			t.Errorf("%q: %v", text, got)
		}
	}
}
