package compare

import (
	"fmt"
	"math"
	"testing"

	"clove.run/clove/bench"
)

// results are one attempt for each task and seed, whose score is f's.
func results(agent string, tasks, seeds int, f func(task, seed int) float64) (all []bench.Result) {
	for task := range tasks {
		for seed := range seeds {
			r := bench.Result{Task: fmt.Sprintf("t%d", task), Agent: agent, Seed: int64(seed), Outcome: bench.Failed, Score: f(task, seed)}
			if r.Score >= 1 {
				r.Outcome = bench.Passed
			}
			all = append(all, r)
		}
	}
	return all
}

func of(t *testing.T, all []Difference, figure string) Difference {
	t.Helper()
	for _, d := range all {
		if d.Figure == figure {
			return d
		}
	}
	t.Fatalf("no %s", figure)
	return Difference{}
}

func TestADifferenceIsSeen(t *testing.T) {
	t.Parallel()
	better := func(task, _ int) float64 { return float64(task%2)/4 + 0.3 }
	worse := func(task, _ int) float64 { return float64(task%2) / 4 }
	all, unpaired, err := Compare(Side{Results: results("a", 8, 3, worse), Agent: "a"}, Side{Results: results("b", 8, 3, better), Agent: "b"})
	if err != nil || unpaired != 0 {
		t.Fatal(unpaired, err)
	}
	if d := of(t, all, "score"); !d.Distinct() || math.Abs(d.Mean-0.3) > 1e-9 || d.Pairs != 24 || d.Tasks != 8 {
		t.Errorf("%+v", d)
	}
	if d := of(t, all, "passed"); d.Distinct() || d.Mean != 0 {
		t.Errorf("%+v", d)
	}
}

// Gains and losses that balance, and few tasks, are no difference.
func TestWhatCannotBeToldApart(t *testing.T) {
	t.Parallel()
	zero := func(int, int) float64 { return 0 }
	mixed := func(task, _ int) float64 { return float64(task%2)*0.4 + 0.1 - 0.3*float64(task%3) }
	all, _, err := Compare(Side{Results: results("a", 9, 2, zero)}, Side{Results: results("a", 9, 2, mixed)})
	if err != nil || of(t, all, "score").Distinct() {
		t.Errorf("%+v, %v", all, err)
	}
	all, _, err = Compare(Side{Results: results("a", tasksLeast-1, 50, zero)}, Side{Results: results("a", tasksLeast-1, 50, func(int, int) float64 { return 1 })})
	if d := of(t, all, "score"); err != nil || d.Distinct() || !math.IsNaN(d.Interval.Low) {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()
	one := func(int, int) float64 { return 1 }
	if _, _, err := Compare(Side{Results: results("a", 6, 1, one)}, Side{Results: results("b", 6, 1, one)}); err == nil {
		t.Error("two agents were paired without being named")
	}
	left, right := results("a", 6, 2, one), results("a", 5, 2, one)
	left[0].Outcome = bench.Infrastructure
	if all, unpaired, err := Compare(Side{Results: left}, Side{Results: right}); err != nil || all[0].Pairs != 9 || unpaired != 4 {
		t.Errorf("%+v, %d unpaired, %v", all, unpaired, err)
	}
	// Nobody counted tokens for some: there is no row for them.
	tokens := int64(5)
	left[1].Metrics.Tokens = &tokens
	all, _, _ := Compare(Side{Results: left}, Side{Results: right})
	for _, d := range all {
		if d.Figure == "tokens" {
			t.Errorf("%+v", d)
		}
	}
}
