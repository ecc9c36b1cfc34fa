package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/docker/go-units"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/policies/advice"
)

// endings explain in one line what ended a run and what to change. The two %s are the
// limit's value and, in brackets, the peak.
var endings = map[agent.Status]struct {
	line string
	unit func(int64) string
}{
	agent.StatusOOM:         {"memory limit of %s reached%s: raise --memory, or let the agent hold less at once", size},
	agent.StatusTimeout:     {"wall clock limit of %s reached%s: raise --timeout, or let the agent finish sooner", clock},
	agent.StatusCPUTime:     {"CPU time limit of %s reached%s: raise --cpu-time, or let the agent compute less", clock},
	agent.StatusOutputLimit: {"output limit of %s reached%s: raise --output-limit, or let the agent write to a file", size},
	agent.StatusDiskFull:    {"disk limit of %s reached%s: raise --disk, or let the agent remove what it no longer needs", size},
}

// ending returns the lines for people about a record: none for an agent that ended by
// itself and reached no limit.
func ending(record agent.Record, limits agent.Limits) []string {
	var lines []string
	// The special cases come before the general one.
	e, known := endings[record.Status]
	switch {
	case known && record.Limit != nil && record.Limit.Name == agent.LimitDiskFiles:
		lines = append(lines, fmt.Sprintf("disk limit reached with %d files: raise --disk, which brings room for more, or let the agent remove what it no longer needs",
			record.Limit.Value))
	case known && record.Limit != nil && record.Limit.Name == agent.ControlSockets:
		lines = append(lines, fmt.Sprintf("more than %s, a quarter of the memory limit, waited unread in sockets%s: raise --memory, or let the agent read what is sent to it",
			size(record.Limit.Value), peak(record.Limit.Peak, size)))
	case known && record.Limit != nil && record.Limit.Name == agent.LimitHostMemory:
		lines = append(lines, fmt.Sprintf("out of memory below the limit of %s%s: the host had no more, for all agents together or for anything; run fewer agents at once, let them hold less, or raise memory_share in cloved's configuration",
			size(record.Limit.Value), peak(record.Limit.Peak, size)))
	case known && record.Limit != nil && record.Limit.Name == agent.LimitTreeMemory:
		lines = append(lines, fmt.Sprintf("out of memory below the limit of %s%s: %s", size(record.Limit.Value), peak(record.Limit.Peak, size), treeMemory(record.Parent != "")))
	case record.Status == agent.StatusTimeout && record.EndedWith() != "":
		lines = append(lines, "raise --timeout of the run that started it, or of those above that, or let the agents finish sooner")
	case known && record.Limit != nil:
		lines = append(lines, fmt.Sprintf(e.line, e.unit(record.Limit.Value), peak(record.Limit.Peak, e.unit)))
	case record.Status == agent.StatusBudget && record.Limit != nil:
		lines = append(lines, spent(*record.Limit))
	case record.Status == agent.StatusPolicyKill && record.Error == nil: // an error is printed already: clove panic's reason
		lines = append(lines, "ended by --on-denial: "+denied(record.Denials))
	case record.Status == agent.StatusKilled:
		lines = append(lines, "killed: on request, or because its supervisor ended")
	}
	// A fork that is refused ends nothing by itself, but explains a failure.
	if refused := record.Events.PidsMax; refused != nil && *refused > 0 && record.ExitCode != 0 {
		lines = append(lines, fmt.Sprintf("pids limit of %d refused %s: raise --pids-limit, or let the agent start fewer processes and threads",
			limits.Pids, times(*refused)))
	}
	return lines
}

// treeMemory says of a run that the kernel ended because a tree of runs had no more memory what gives it more.
func treeMemory(child bool) string {
	if child {
		return "a run above it and all that are below that had no more together: raise --memory of that run, or let fewer of them hold memory at once"
	}
	return "it and the runs that its agent started had no more together: raise --memory, or let fewer of them hold memory at once"
}

// spent is the end of a run by a budget: what is spent, what the next call would have reserved
// if that did not fit, and what goes on.
func spent(limit agent.LimitHit) string {
	d := budget.Dimension(limit.Name)
	text, more := "budget of "+d.Words(limit.Value), "--budget "+advice.LargerBudget(limit)
	if limit.Account != "" {
		text, more = text+" in "+limit.Account, "clove budget set "+limit.Account+" "+advice.LargerBudget(limit)+", or clove budget reset "+limit.Account+" "+d.Title()
	}
	switch {
	case limit.Wanted > 0:
		text += ": " + d.Show(limit.Used) + " are spent, and the next call would have reserved at least " + d.Show(limit.Wanted)
	case limit.Peak != nil && *limit.Peak <= limit.Value: // of an earlier clove
		text += " has less left than the agent wanted to use" + peak(limit.Peak, d.Show)
	default:
		text += " spent" + peak(limit.Peak, d.Show)
	}
	return text + ": give more with " + more + ", or let the agent use less"
}

// peak is empty if this host's cgroup does not report it.
func peak(value *int64, unit func(int64) string) string {
	if value == nil {
		return "" // this host's cgroup does not count it
	}
	return " (peak " + unit(*value) + ")"
}

// denied lists what a policy did not allow.
func denied(denials []agent.Denial) string {
	var targets []string
	for _, d := range denials {
		targets = append(targets, d.Kind+" "+d.Target+" ("+d.Rule+")")
	}
	if len(targets) == 0 {
		return "calls were refused; clove audit query shows them"
	}
	return strings.Join(targets, ", ") + "; --allow it if it is meant to be"
}

// times counts refused calls of fork(2) and clone(2), which the pids controller
// reports.
func times(n int64) string {
	if n == 1 {
		return "1 fork"
	}
	return fmt.Sprintf("%d forks", n)
}

// size and clock are the units of limits: bytes and milliseconds.
func size(bytes int64) string { return units.BytesSize(float64(bytes)) }

func clock(ms int64) string { return (time.Duration(ms) * time.Millisecond).String() }

// reportDenied prints one line when a target is refused for the first time, so that the
// user can allow it in the next run.
func (p launcher) reportDenied(d agent.Denial, reason, hint string) {
	line := deniedKinds[d.Kind] + ": refused " + d.Target
	if d.Program != "" {
		line += " by " + d.Program
	}
	if reason != "" {
		line += ": " + reason
	}
	if hint != "" {
		line += " (" + hint + ")"
	}
	p.say("clove", cyan, printable(line))
}

// deniedKinds are the kinds of denials for people.
var deniedKinds = map[string]string{agent.DenialNetwork: "network", agent.DenialCall: "system call", agent.DenialFile: "file",
	agent.DenialExec: "program", agent.DenialCapability: "privilege", agent.DenialSecret: "secret"}
