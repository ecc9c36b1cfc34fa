package runtime

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/internal/fanotify"
	"clove.run/clove/internal/undo"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

// settle ends the watch when no process of the agent is left, while the layer is still
// mounted, and adds what the layer shows.
func (o *useRecorder) settle(tree *rootfs.Tree) {
	if o == nil || o.read == nil {
		return
	}
	o.once.Do(func() {
		o.files.Stop()
		close(o.stop)
		<-o.read
		<-o.ended
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.files.Lost != "" {
			o.incomplete[o.files.Lost] = true
		}
		o.layer(tree)
		o.tops()
	})
}

// tops notes each mount in whose top directory a name was made or removed; o.mu is held. It
// comes after layer: overlayfs changes the top of an upper, too, when it copies up a directory
// below, and the layer has that name then.
func (o *useRecorder) tops() {
	for _, m := range o.mounts {
		var now unix.Stat_t
		if unix.Fstat(int(m.top.Fd()), &now) != nil || now.Mtim == m.since.Mtim && now.Ctim == m.since.Ctim {
			continue
		}
		explained := false
		for name := range o.paths[wasWritten] {
			explained = explained || strings.HasPrefix(name, strings.TrimSuffix(m.at, "/")+"/")
		}
		if !explained {
			o.note(wasWritten, m.at)
		}
	}
}

// layer notes what was made, changed or removed in the layer; o.mu is held.
func (o *useRecorder) layer(tree *rootfs.Tree) {
	if tree == nil {
		return
	}
	names, all, err := tree.Touched(agent.MostObservedPaths)
	if err != nil {
		o.incomplete["what it changed could not be listed: "+err.Error()] = true
	} else if !all {
		o.incomplete[tooMany("files")] = true
	}
	for _, name := range names {
		o.note(wasWritten, name)
	}
}

// result is the whole observation. record has the kernel's own peaks.
func (o *useRecorder) result(record agent.Record, callsKnown bool, plan rootfs.Plan) agent.Observed {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps := func(how fileUse) []string {
		kept, over := agent.Bounded(o.paths[how], cmp.Compare[string], agent.MostObservedPaths)
		if over {
			o.incomplete[tooMany("files")] = true
		}
		return kept
	}
	seen := agent.Observed{Executed: maps(wasExecuted), Written: maps(wasWritten), CallsKnown: callsKnown, ProgramsKnown: callsKnown, Peaks: o.peaks}
	o.programs(&seen, plan)
	for path := range o.paths[wasRead] {
		if o.paths[wasExecuted][path] || o.paths[wasWritten][path] {
			delete(o.paths[wasRead], path)
		}
	}
	seen.Read, seen.Folders = maps(wasRead), maps(wasListed)
	var over bool
	if seen.Calls, over = agent.Bounded(o.calls, agent.CompareCalls, agent.MostObservedCalls); over {
		o.incomplete[tooMany("system calls")] = true
	}
	targets := map[agent.ObservedTarget]bool{}
	for _, t := range o.targets {
		targets[t] = true
	}
	if seen.Targets, over = agent.Bounded(targets, agent.CompareTargets, agent.MostObservedTargets); over {
		o.incomplete[tooMany("targets")] = true
	}
	seen.Peaks = peaksOf(seen.Peaks, record)
	seen.Incomplete, _ = agent.Bounded(o.incomplete, cmp.Compare[string], len(o.incomplete))
	return seen
}

// peaksOf adds the figures of the record.
func peaksOf(p agent.ObservedPeaks, record agent.Record) agent.ObservedPeaks {
	known := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	u := record.Usage
	p.MemoryBytes, p.Pids, p.CPUMS, p.WallMS = known(u.MemoryPeakBytes), known(u.PidsPeak), known(u.CPUMS), record.WallMS
	p.OutputBytes, p.DiskBytes = known(u.OutputBytes), max(p.DiskBytes, known(u.DiskBytes))
	if record.Network != nil {
		p.Connections = record.Network.ConnectionsPeak
	}
	return p
}

// keep passes the observation on, and keeps it beside the log of a run that is not removed.
func (o *useRecorder) keep(record agent.Record, callsKnown bool, plan rootfs.Plan, remove bool, streams IO, path string) {
	if o == nil || o.read == nil {
		return
	}
	seen := o.result(record, callsKnown, plan)
	if streams.Observed != nil {
		streams.Observed(seen)
	}
	if remove {
		return
	}
	text, err := json.Marshal(seen)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = atomicfile.Write(path, 0o600, text)
	}
	if err != nil {
		fmt.Fprintf(streams.Stderr, "clove: warning: cannot keep what %s used: %v\n", record.Name, err)
	}
}

// observedName is the file of an observation, beside the log of a run.
const observedName = "observed.json"

// Observed is the file with what a run with Spec.Learn used.
func (p Paths) Observed(id agent.ID) string { return filepath.Join(p.Log(id), observedName) }

// mappingCalls are watched to learn which files become code in a process: loaders map a library
// with mmap(2). The kernel itself maps a program and its loader, which fanotify reports.
func mappingCalls() []seccomp.Watch {
	return []seccomp.Watch{{Call: "mmap", Argument: 2, Bits: unix.PROT_EXEC}}
}

// programs adds what a list of programs for the run would name. plan is the run's.
func (o *useRecorder) programs(seen *agent.Observed, plan rootfs.Plan) {
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

// close lets go of the mounts, which the teardown removes next.
func (o *useRecorder) close() error {
	o.settle(nil)
	failures := []error{o.files.Close()}
	for _, m := range o.mounts {
		failures = append(failures, m.top.Close())
	}
	return errors.Join(failures...)
}

// watch begins to watch the files of the sandbox whose first process is pid. It comes before the
// orders: nothing of the agent has executed.
func (o *useRecorder) watch(pid int, group *cgroups.Group, tree *rootfs.Tree, u *undo.Stack) (err error) {
	if o == nil {
		return nil
	}
	if o.files, err = fanotify.New(); err != nil {
		return err
	}
	u.Add("observation", o.close)
	o.init = pid
	if err := o.mark(pid); err != nil {
		return err
	}
	o.read, o.stop, o.ended = make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() { defer close(o.read); o.files.Read(o.file) }()
	go func() { defer close(o.ended); o.sample(group, tree) }()
	return nil
}
