package report

import (
	"cmp"
	"fmt"
	"slices"

	"clove.run/clove/bench"
	"clove.run/clove/bench/compare"
)

// Data is one folder of results.
type Data struct {
	Dir      string
	Manifest bench.Manifest
	Results  []bench.Result
	Cut      int // lines of results.jsonl that are none
}

// Load reads a folder.
func Load(dir string) (Data, error) {
	d := Data{Dir: dir}
	var err error
	if d.Manifest, err = bench.ReadManifest(dir); err != nil {
		return d, err
	}
	d.Results, d.Cut, err = bench.ReadResults(dir)
	slices.SortStableFunc(d.Results, func(a, b bench.Result) int { return a.Times.Began.Compare(b.Times.Began) })
	return d, err
}

// Rate counts the attempts of one agent, or of one agent at one task.
type Rate struct {
	Agent, Task    string
	Passed, Graded int
	Infrastructure int // in neither of the two
	Score          float64
}

// add counts one result.
func (r *Rate) add(result bench.Result) {
	switch result.Outcome {
	case bench.Infrastructure:
		r.Infrastructure++
		return
	case bench.Passed:
		r.Passed++
	}
	r.Graded++
	r.Score += result.Score
}

// Mean is the mean score.
func (r *Rate) Mean() float64 {
	if r.Graded == 0 {
		return 0
	}
	return r.Score / float64(r.Graded)
}

// Agents are the rates by agent, in the order of their names.
func (d Data) Agents() []Rate {
	return d.rates(func(r bench.Result) Rate { return Rate{Agent: r.Agent} })
}

// Cells are the rates by task and agent.
func (d Data) Cells() []Rate {
	return d.rates(func(r bench.Result) Rate { return Rate{Agent: r.Agent, Task: r.Task} })
}

func (d Data) rates(of func(bench.Result) Rate) []Rate {
	var all []Rate
	for _, result := range d.Results {
		key := of(result)
		i := slices.IndexFunc(all, func(r Rate) bool { return r.Agent == key.Agent && r.Task == key.Task })
		if i < 0 {
			i, all = len(all), append(all, key)
		}
		all[i].add(result)
	}
	slices.SortFunc(all, func(a, b Rate) int {
		if a.Task != b.Task {
			return cmp.Compare(a.Task, b.Task)
		}
		return cmp.Compare(a.Agent, b.Agent)
	})
	return all
}

// verdict says which of the two agents that passed most is ahead; empty for one agent.
func (d Data) verdict() string {
	agents := d.Agents()
	slices.SortStableFunc(agents, func(a, b Rate) int {
		return cmp.Or(cmp.Compare(b.Passed*a.Graded, a.Passed*b.Graded), cmp.Compare(b.Mean(), a.Mean()))
	})
	if len(agents) < 2 {
		return ""
	}
	side := func(r Rate) compare.Side { return compare.Side{Results: d.Results, Agent: r.Agent} }
	found, _, err := compare.Compare(side(agents[0]), side(agents[1]))
	if err != nil {
		return "No two agents have a result of the same task and seed, so that none is ahead."
	}
	text := compare.Verdict(agents[0].Agent, agents[1].Agent, found)
	if more := len(agents) - 2; more > 0 {
		text += fmt.Sprintf(" %d more agents follow.", more)
	}
	return text
}
