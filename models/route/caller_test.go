package route

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Failures of one run leave a target out for it alone, those of several runs for their owner,
// and connections that cannot be made for everybody.
func TestWhoseFailuresCount(t *testing.T) {
	t.Parallel()
	first, second, stranger := Caller{1000, "first"}, Caller{1000, "second"}, Caller{2000, "third"}
	third := Caller{1000, "third"}
	for name, row := range map[string]struct {
		reports []Caller
		outcome Outcome
		leftOut string // of first, second, third and stranger
	}{
		"one run":                 {[]Caller{first, first, first, first}, Failed, "[true false false false]"},
		"two runs":                {[]Caller{first, second, first}, Failed, "[true true true false]"},
		"too few":                 {[]Caller{first, second}, Failed, "[false false false false]"},
		"two owners":              {[]Caller{first, first, stranger, stranger}, Failed, "[false false false false]"},
		"one run reaches nobody":  {[]Caller{first, first, first}, Unreached, "[true true true true]"},
		"the last of many counts": {[]Caller{first, first, first, second}, Failed, "[true true true false]"},
	} {
		var h Health
		for _, by := range row.reports {
			h.Report("a", by, row.outcome, now)
		}
		var got []bool
		for _, by := range []Caller{first, second, third, stranger} {
			got = append(got, !h.open("a", by, now))
		}
		if fmt.Sprint(got) != row.leftOut {
			t.Errorf("%s: %v, want %s", name, got, row.leftOut)
		}
	}
}

// Whatever a run reports but connections that were not made: no other run is kept from a target.
func TestARunKeepsNoOtherFromATarget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h Health
		at, other := now, Caller{1000, "other"}
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			at = at.Add(time.Duration(rapid.IntRange(0, int(Pause)).Draw(t, "time")))
			h.Report("a", me, Outcome(rapid.IntRange(int(Unknown), int(Failed)).Draw(t, "outcome")), at)
			if !h.open("a", other, at) {
				t.Fatal("another run is kept from it")
			}
		}
	})
}

// What runs have seen is forgotten when they have gone.
func TestFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	var h Health
	for i := range 1000 {
		h.Report("a", Caller{1000, fmt.Sprint(i)}, Failed, now)
	}
	h.Report("a", Caller{1000, "last"}, Failed, now.Add(memory+Pause))
	if len(h.sick) != 2 { // its owner's and its own
		t.Errorf("%d are kept", len(h.sick))
	}
	h.Report("a", Caller{1000, "last"}, Failed, now.Add(memory+Pause))
	h.Report("a", Caller{1000, "last"}, Failed, now.Add(memory+Pause))
	if !h.open("a", Caller{1000, "other"}, now.Add(memory+Pause)) {
		t.Error("failures of long ago count")
	}
}
