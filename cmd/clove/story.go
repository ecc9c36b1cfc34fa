package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/policies/advice"
)

// fact is one line about a run, for clove show and clove why.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// logLines is how many lines of a run's log show and why have, and logWidth the most characters of
// each.
const (
	logLines = 5
	logWidth = 200
)

// lastLines are the last lines of a run's log, if cloved has one.
func (p program) lastLines(c *cli.Context, run agent.Run) (lines []string) {
	if !run.Spec.Detached {
		return nil
	}
	d, err := p.cloved(c)
	if err != nil {
		return nil
	}
	defer d.Close()
	// A log that cannot be read is no failure of the rest.
	_ = d.Logs(c.Context, api.LogsParams{RunParams: api.RunParams{Run: string(run.Spec.ID)}, Tail: new(logLines)}, func(some []api.LogLine) error {
		for _, line := range some {
			text := []rune(strings.ToValidUTF8(string(line.Content()), "\ufffd"))
			lines = append(lines, string(text[:min(len(text), logWidth)]))
		}
		return nil
	})
	return lines
}

// story are the terms of a run, how it came to its end, and what to do next. Those without a value
// are left out.
func story(run agent.Run, log []string) (all []fact) {
	add := func(name, value string) {
		if value != "" {
			all = append(all, fact{name, value})
		}
	}
	if r := run.Record; r != nil {
		add("exit", fmt.Sprintf("%d (%s)", r.ExitCode, r.Status))
	}
	if by := stoppedBy(run); by != nil {
		add("stopped", "by "+by.By+", at "+by.Time.Format(time.RFC3339))
	}
	add("restarts", restartsText(run))
	add("limits", limitsText(run.Spec.Limits))
	policy := run.Spec.Policy.Name
	if claimed := run.Spec.Policy.Claimed; claimed != "" {
		policy += ", claimed to be " + claimed
	}
	add("policy", policy)
	for _, line := range log {
		add("log", line)
	}
	add("next", nextStep(run))
	return all
}

func stoppedBy(run agent.Run) *agent.Stopped {
	if run.Record != nil {
		return run.Record.Stopped
	}
	return run.Queue.Stopped
}

// restartsText is empty for a run that nothing starts again.
func restartsText(run agent.Run) string {
	r := run.Spec.Restart
	if !r.Policy.Restarts() {
		return ""
	}
	text := fmt.Sprintf("%d in a row, by --restart %s", run.Queue.Restarts, r.Policy)
	if r.Max > 0 {
		text += fmt.Sprintf(":%d", r.Max)
	}
	switch {
	case run.Queue.GivenUp:
		text += "; it gave up"
	case run.Queue.StopAsked:
		text += "; no more, because a stop was asked for"
	case run.State == agent.StateQueued && !run.Queue.NotBefore.IsZero():
		text += "; the next at " + run.Queue.NotBefore.Format(time.RFC3339)
	}
	return text
}

// limitsText is empty for an OCI container, whose limits are its engine's.
func limitsText(l agent.Limits) string {
	if l.MemoryBytes == 0 {
		return ""
	}
	parts := []string{"memory " + size(l.MemoryBytes), fmt.Sprintf("pids %d", l.Pids), "disk " + size(l.DiskBytes)}
	if l.CPUs > 0 {
		parts = append(parts, fmt.Sprintf("cpus %g", l.CPUs))
	}
	for _, limit := range []struct {
		name  string
		value time.Duration
	}{{"timeout", l.WallClock}, {"CPU time", l.CPUTime}} {
		if limit.value > 0 {
			parts = append(parts, limit.name+" "+limit.value.String())
		}
	}
	if l.OutputBytes > 0 {
		parts = append(parts, "output "+size(l.OutputBytes))
	}
	return strings.Join(parts, ", ")
}

// nextStep names the command that a user most likely wants now.
func nextStep(run agent.Run) string {
	name := shown(run.Name())
	record := run.Record
	switch {
	case run.State == agent.StateQueued:
		return "clove ps -a says what it waits for; clove stop " + name + " takes it out of the queue"
	case record == nil && run.Spec.Detached:
		return "clove logs -f " + name + " follows it"
	case record == nil:
		return ""
	case record.Status == agent.StatusStartFailed:
		return "change what the error names, and run it again"
	case run.Parent != "" && (record.EndedWith() != "" || record.Limit != nil && record.Limit.Name == agent.LimitTreeMemory):
		return "clove why " + parentName(run) + " explains the run that started it"
	case record.Status == agent.StatusBudget && record.Limit != nil && record.Limit.Account == "" && run.Spec.Detached:
		return "clove budget raise " + name + " " + advice.MoreBudget(*record.Limit) + ", then clove restart " + name + " goes on with its files"
	case record.Limit != nil || len(record.Denials) > 0:
		return "run it again with the flags that clove why " + name + " names"
	case record.ExitCode != 0 && run.Spec.Detached:
		return "clove logs " + name + " has the rest of its log; clove restart " + name + " starts it again with its files"
	case run.Layer != "":
		return "clove diff " + name + " lists what it changed; clove apply " + name + " writes it back"
	}
	return ""
}
