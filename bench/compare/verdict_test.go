package compare

import (
	"math"
	"testing"

	"clove.run/clove/bench/stats"
)

func TestVerdict(t *testing.T) {
	t.Parallel()
	none := stats.Interval{Low: math.NaN(), High: math.NaN()}
	of := func(first, second float64, i stats.Interval, tasks int) Difference {
		return Difference{First: first, Second: second, Mean: second - first, Interval: i, Pairs: 2 * tasks, Tasks: tasks}
	}
	for _, c := range []struct {
		passed, score Difference
		want          string
	}{
		{of(0.5, 0.9, stats.Interval{Low: 0.2, High: 0.6}, 10), of(0.5, 0.9, none, 10), "b is ahead, and the data tell the two apart: it passed 90 %, and a 50 % (20 pairs of 10 tasks)."},
		{of(0.9, 0.5, stats.Interval{Low: -0.6, High: -0.2}, 10), of(0.5, 0.9, none, 10), "a is ahead, and the data tell the two apart: it passed 90 %, and b 50 % (20 pairs of 10 tasks)."},
		{of(0.5, 0.6, stats.Interval{Low: -0.2, High: 0.4}, 10), of(0.5, 0.6, stats.Interval{Low: -0.2, High: 0.4}, 10),
			"b is ahead, but the data cannot tell the two apart: it passed 60 %, and a 50 % (20 pairs of 10 tasks)."},
		{of(0.5, 1, none, 1), of(0.5, 1, none, 1), "b is ahead, but fewer than 5 tasks are too few to tell: it passed 100 %, and a 50 % (2 pairs of 1 task)."},
		{of(1, 1, stats.Interval{}, 10), of(0.75, 0.5, stats.Interval{Low: -0.3, High: -0.1}, 10), "a is ahead, and the data tell the two apart: it scored 0.75, and b 0.5 (20 pairs of 10 tasks)."},
		{of(1, 1, stats.Interval{}, 10), of(1, 1, stats.Interval{}, 10), "a and b are level: both scored 1 (20 pairs of 10 tasks)."},
	} {
		if got := Verdict("a", "b", []Difference{c.passed, c.score}); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
