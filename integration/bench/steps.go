package main

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// stepLine is a line of `clove run --debug`: time since the start, the step's name, its
// duration.
var stepLine = regexp.MustCompile(`(?m)^clove: +([0-9.]+) ms +(\S+) +([0-9.]+) ms$`)

// agentStep is the time between the step orders and the teardown: the agent's execve,
// the agent itself, and the report of its end.
const agentStep = "agent"

// steps measures the durations that clove reports, the longest first.
func (b *bench) steps(t *table) error {
	all := map[string][]float64{}
	for range b.rounds {
		cmd := b.prepare(peer{command: debugCommand}, programTrue)
		var said tail
		cmd.Stderr = &said
		err := b.thread.Do(cmd.Start)
		if err == nil {
			err = cmd.Wait()
		}
		if err != nil {
			return err
		}
		for name, ms := range parseSteps(said.text) {
			all[name] = append(all[name], ms)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(all), func(x, y string) int {
		return cmp.Or(cmp.Compare(median(all[y]), median(all[x])), cmp.Compare(x, y))
	}) {
		t.several("clove's step "+name, unitMS, all[name], "")
	}
	return nil
}

func debugCommand(b *bench, _ string, program ...string) []string {
	return append([]string{b.clove, "run", "--rm", "--debug", "--"}, program...)
}

// parseSteps reads the lines of one run. Other lines are the plan's and are skipped.
func parseSteps(text []byte) map[string]float64 {
	steps := map[string]float64{}
	var before float64 // when the last step ended
	for _, line := range stepLine.FindAllSubmatch(text, -1) {
		at, err := strconv.ParseFloat(string(line[1]), 64)
		if err != nil {
			continue
		}
		took, err := strconv.ParseFloat(string(line[3]), 64)
		if err != nil {
			continue
		}
		name := string(line[2])
		if name == "teardown" {
			steps[agentStep] = at - took - before
		}
		steps[name] = took
		before = at
	}
	return steps
}
