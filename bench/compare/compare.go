package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/bench"
	"clove.run/clove/bench/stats"
)

// Side is one set of results. Agent chooses one agent's; empty: all, which are then paired by
// their agents' names, too.
type Side struct {
	Results []bench.Result
	Agent   string
}

// Difference is that of one figure, second side minus first.
type Difference struct {
	Figure        string
	First, Second float64 // means of the pairs
	Mean          float64
	Interval      stats.Interval // NaN: too few tasks
	Pairs, Tasks  int
}

// Distinct reports whether the data tell the two sides apart.
func (d Difference) Distinct() bool {
	return !math.IsNaN(d.Interval.Low) && !d.Interval.Holds(0)
}

// tasksLeast is how many tasks an interval needs: of fewer, there are hardly any samples.
const tasksLeast = 5

// figure is one of those that are compared.
type figure struct {
	name string
	of   func(bench.Result) float64
}

// figures are compared in this order.
func figures() []figure {
	return []figure{
		{"passed", func(r bench.Result) float64 {
			if r.Outcome == bench.Passed {
				return 1
			}
			return 0
		}},
		{"score", func(r bench.Result) float64 { return r.Score }},
		{"time, s", func(r bench.Result) float64 { return float64(r.Metrics.WallMS) / 1e3 }},
		{"CPU time, s", func(r bench.Result) float64 { return known(r.Metrics.CPUMS) / 1e3 }},
		{"peak memory, MiB", func(r bench.Result) float64 { return known(r.Metrics.MemoryPeak) / (1 << 20) }},
		{"tokens", func(r bench.Result) float64 { return known(r.Metrics.Tokens) }},
		{"cost, $", func(r bench.Result) float64 { return known(r.Metrics.CostMicros) / 1e6 }},
	}
}

func known(n *int64) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}

// pair is two attempts at the same task with the same seed.
type pair struct{ first, second bench.Result }

// Compare pairs what can be paired. unpaired counts the results of both sides that cannot be,
// among them those that say nothing about an agent.
func Compare(first, second Side) (all []Difference, unpaired int, err error) {
	pairs, unpaired := match(first, second)
	if len(pairs) == 0 {
		return nil, unpaired, &agent.Error{Kind: agent.KindInvalid, Step: "compare", Message: "no attempts have the same task, seed and agent",
			Hint: "name agents that are to be compared: clove bench compare DIR:ONE DIR:OTHER"}
	}
	for _, f := range figures() {
		if d, ok := difference(f.name, pairs, f.of); ok {
			all = append(all, d)
		}
	}
	return all, unpaired, nil
}

func match(first, second Side) (pairs []pair, unpaired int) {
	byName := first.Agent == "" || second.Agent == ""
	key := func(r bench.Result) string {
		if byName {
			return fmt.Sprintf("%s.%d.%s", r.Task, r.Seed, r.Agent)
		}
		return fmt.Sprintf("%s.%d", r.Task, r.Seed)
	}
	waiting := map[string]bench.Result{}
	for _, r := range first.chosen() {
		waiting[key(r)] = r
	}
	for _, r := range second.chosen() {
		if one, has := waiting[key(r)]; has && one.Outcome != bench.Infrastructure && r.Outcome != bench.Infrastructure {
			pairs = append(pairs, pair{one, r})
			delete(waiting, key(r))
			continue
		}
		unpaired++
	}
	return pairs, unpaired + len(waiting)
}

func (s Side) chosen() []bench.Result {
	return slices.DeleteFunc(slices.Clone(s.Results), func(r bench.Result) bool { return s.Agent != "" && r.Agent != s.Agent })
}

// difference leaves out a figure that some pair lacks: a mean over others would be another.
func difference(name string, pairs []pair, of func(bench.Result) float64) (Difference, bool) {
	groups := map[string][]float64{}
	var first, second, differences []float64
	for _, p := range pairs {
		a, b := of(p.first), of(p.second)
		if math.IsNaN(a) || math.IsNaN(b) {
			return Difference{}, false
		}
		first, second, differences = append(first, a), append(second, b), append(differences, b-a)
		groups[p.first.Task] = append(groups[p.first.Task], b-a)
	}
	d := Difference{Figure: name, First: stats.Mean(first), Second: stats.Mean(second), Mean: stats.Mean(differences), Pairs: len(pairs), Tasks: len(groups)}
	d.Interval = stats.Interval{Low: math.NaN(), High: math.NaN()}
	if len(groups) >= tasksLeast {
		d.Interval = stats.Bootstrap(inOrder(groups))
	}
	return d, true
}

// inOrder makes the interval the same for the same results.
func inOrder(groups map[string][]float64) (all [][]float64) {
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		all = append(all, groups[name])
	}
	return all
}
