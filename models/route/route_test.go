package route

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var now = time.Unix(1_800_000_000, 0)

// me is who calls.
var me = Caller{Owner: 1000, Run: "mine"}

func (h *Health) failing(name string, times int) {
	for range times {
		h.Report(name, me, Failed, now)
	}
}

func TestWeights(t *testing.T) {
	t.Parallel()
	targets := []Target{{"a", 1, 0}, {"spare", 0, 0}, {"b", 3, 0}, {"c", 5, 1}}
	for name, row := range map[string]struct {
		failing []string
		want    string // by draws of 0, 0.25, 0.5, 0.75 and almost 1
	}{
		"all are well":   {nil, "[0 2 2 2 2]"},
		"one fails":      {[]string{"b"}, "[0 0 0 0 0]"},
		"both fail":      {[]string{"a", "b"}, "[1 1 1 1 1]"},
		"a whole step":   {[]string{"a", "b", "spare"}, "[3 3 3 3 3]"},
		"all fail":       {[]string{"a", "b", "c", "spare"}, "[0 0 0 0 0]"},
		"a spare fails":  {[]string{"spare"}, "[0 2 2 2 2]"},
		"the last fails": {[]string{"c"}, "[0 2 2 2 2]"},
	} {
		var h Health
		for _, f := range row.failing {
			h.failing(f, Failures)
		}
		var got []int
		for _, draw := range []float64{0, 0.25, 0.5, 0.75, 0.999999} {
			got = append(got, h.Choose(targets, me, draw, now))
		}
		if fmt.Sprint(got) != row.want {
			t.Errorf("%s: %v, want %s", name, got, row.want)
		}
	}
}

// A target that fails again and again is tried once in each pause, and serves all calls again
// behind the first that succeeds.
func TestATargetThatComesBack(t *testing.T) {
	t.Parallel()
	var h Health
	targets := []Target{{"a", 1, 0}, {"b", 1, 1}}
	served := func(after time.Duration) int { return h.Choose(targets, me, 0, now.Add(after)) }
	h.failing("a", Failures-1)
	if served(0) != 0 {
		t.Error("it is left out too early")
	}
	h.Report("a", me, Unknown, now)
	h.failing("a", 1)
	if served(0) != 1 || served(Pause-1) != 1 {
		t.Error("it is not left out")
	}
	if served(Pause) != 0 || served(Pause) != 1 || served(2*Pause-1) != 1 {
		t.Error("not exactly one call tries it")
	}
	h.Report("a", me, Failed, now.Add(Pause+5))
	if served(2*Pause) != 1 || served(2*Pause+5) != 0 {
		t.Error("the failure of the trial does not count")
	}
	h.Report("a", me, Succeeded, now.Add(2*Pause+5))
	for range 3 {
		if served(2*Pause+5) != 0 {
			t.Error("it does not serve again")
		}
	}
}

// Whatever happened: the choice is a target, none of a later step where one of an earlier
// is open, and shares follow weights.
func TestChoices(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var h Health
		var targets []Target
		step := 0
		for i := range rapid.IntRange(1, 6).Draw(t, "targets") {
			step += rapid.IntRange(0, 1).Draw(t, "step")
			targets = append(targets, Target{fmt.Sprint(i), rapid.IntRange(0, 3).Draw(t, "weight"), step})
		}
		at := now
		for range 30 {
			at = at.Add(time.Duration(rapid.IntRange(0, int(Pause)).Draw(t, "time")))
			open := map[int]bool{}
			first := -1
			for i, target := range targets {
				if open[i] = h.open(target.Name, me, at); open[i] && first < 0 {
					first = i
				}
			}
			got := h.Choose(targets, me, rapid.Float64Range(0, 0.999).Draw(t, "draw"), at)
			if first < 0 && got != 0 || first >= 0 && (!open[got] || targets[got].Fallback != targets[first].Fallback) {
				t.Fatalf("%d of %+v, open: %v", got, targets, open)
			}
			h.Report(targets[got].Name, me, Outcome(rapid.IntRange(0, 3).Draw(t, "outcome")), at)
		}
	})
}
