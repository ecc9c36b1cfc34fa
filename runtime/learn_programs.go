package runtime

import (
	"cmp"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

// mappingCalls are watched to learn which files become code in a process: loaders map a library
// with mmap(2). The kernel itself maps a program and its loader, which fanotify reports.
func mappingCalls() []seccomp.Watch {
	return []seccomp.Watch{{Call: "mmap", Argument: 2, Bits: unix.PROT_EXEC}}
}

// mapped notes a file that is about to be mapped as code. Another thread of the agent's may
// change the descriptor meanwhile: what is noted decides nothing about this run.
func (o *observer) mapped(c observed) {
	if c.Name != "mmap" || c.Args[2]&unix.PROT_EXEC == 0 || c.Args[3]&unix.MAP_ANONYMOUS != 0 {
		return
	}
	path := c.From.File(c.Call, int32(c.Args[4]))
	if path == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(wasMapped, path)
}

// programs adds what a list of programs for the run would name. plan is the run's.
func (o *observer) programs(seen *agent.Observed, plan rootfs.Plan) {
	found, err := plan.Seen(slices.Sorted(maps.Keys(o.paths[wasExecuted])), slices.Sorted(maps.Keys(o.paths[wasMapped])))
	if err != nil {
		seen.ProgramsKnown = false
		o.incomplete["the files of its programs could not be read: "+err.Error()] = true
	}
	bounded := func(list []string) []string {
		kept, over := agent.Bounded(setOf(list), cmp.Compare[string], agent.MostObservedPaths)
		if over {
			o.incomplete[tooMany("programs")] = true
		}
		return kept
	}
	seen.Programs, seen.Listed = bounded(found.Programs), bounded(found.Used)
	problems := map[agent.ObservedProblem]bool{}
	for path, reason := range found.Refused {
		problems[agent.ObservedProblem{Path: path, Reason: reason}] = true
	}
	seen.Unlistable, _ = agent.Bounded(problems, agent.CompareProblems, agent.MostObservedPaths)
}

func setOf(list []string) map[string]bool {
	set := map[string]bool{}
	for _, item := range list {
		set[item] = true
	}
	return set
}
