package plan

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clove.run/clove/bench"
	"clove.run/clove/bench/suite"
)

func sample(tasks, agents, seeds int) *suite.Suite {
	s := &suite.Suite{}
	for i := range tasks {
		s.Tasks = append(s.Tasks, suite.Task{Name: fmt.Sprintf("t%d", i)})
	}
	for i := range agents {
		s.Agents = append(s.Agents, suite.Agent{Name: fmt.Sprintf("a%d", i)})
	}
	for i := range seeds {
		s.Seeds = append(s.Seeds, int64(i)-1)
	}
	return s
}

func ids(all []Attempt) (names []string) {
	for _, a := range all {
		names = append(names, a.ID())
	}
	return names
}

func TestTheOrder(t *testing.T) {
	t.Parallel()
	want := []string{"t0.a0.-1", "t0.a1.-1", "t1.a0.-1", "t1.a1.-1", "t0.a0.0", "t0.a1.0", "t1.a0.0", "t1.a1.0"}
	if got := ids(All(sample(2, 2, 2))); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

func TestFilter(t *testing.T) {
	t.Parallel()
	all := All(sample(3, 2, 2))
	for _, c := range []struct {
		patterns []string
		want     int
	}{{nil, 12}, {[]string{"t0"}, 4}, {[]string{"*.a1"}, 6}, {[]string{"t1.a1.0"}, 1}, {[]string{"t1.a1.0", "t1.a1"}, 2}, {[]string{"t[01]"}, 8}} {
		if got, err := Filter(all, c.patterns); err != nil || len(got) != c.want {
			t.Errorf("%v: %d, %v", c.patterns, len(got), err)
		}
	}
	for _, bad := range []string{"x", "t0.a0.0.0", "t[", "T0"} {
		if got, err := Filter(all, []string{bad}); err == nil {
			t.Errorf("%s: %v", bad, ids(got))
		}
	}
}

// However often a bench is interrupted, each attempt ends up with one result, and none is
// made twice but those that said nothing about the agent.
func TestResumeMakesWhatIsLeft(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := All(sample(rapid.IntRange(1, 5).Draw(t, "tasks"), rapid.IntRange(1, 3).Draw(t, "agents"), rapid.IntRange(1, 3).Draw(t, "seeds")))
		var results []bench.Result
		valid := map[string]int{}
		for round := 0; len(Left(all, results)) > 0; round++ {
			left := Left(all, results)
			// From the second round on there is progress, or it would never end.
			n := rapid.IntRange(min(round, 1), len(left)).Draw(t, "before the crash")
			for _, i := range rapid.Permutation(slices.Collect(func(yield func(int) bool) {
				for i := range left {
					if !yield(i) {
						return
					}
				}
			})).Draw(t, "order")[:n] {
				outcome := bench.Passed
				if round < 3 {
					outcome = rapid.SampledFrom([]bench.Outcome{bench.Passed, bench.Failed, bench.Infrastructure}).Draw(t, "outcome")
				}
				if outcome != bench.Infrastructure {
					valid[left[i].ID()]++
				}
				results = append(results, bench.Result{Attempt: left[i].ID(), Outcome: outcome})
			}
		}
		for _, a := range all {
			if valid[a.ID()] != 1 {
				t.Fatalf("%s has %d results", a.ID(), valid[a.ID()])
			}
		}
	})
}
