package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/daemon/metrics"
)

// turns decides whose turn it is. It is a pure function of what it is given.
type turns struct {
	now         time.Time
	memoryBytes int64 // that agents may be promised together; 0: no limit
	atOnce      int   // starts that may go on at the same time
	draining    bool
}

// decision is what turns says.
type decision struct {
	start   []agent.Run         // in this order
	reasons map[agent.ID]string // why the others wait
	soon    map[agent.ID]bool   // of these, those that wait for a place among the starts: for moments
	waiting map[string]int      // how many wait for what: metrics.Reasons
	wake    time.Time           // when to ask again at the latest; zero: when something changes
}

// decide looks at every run. The queue is ordered by priority, then by the time
// of joining; a run that does not fit holds up those behind it, lest small ones
// starve a large one. Waiting raises the priority, lest important ones that keep
// coming starve a less important one. A run that waits for its time or for
// another run, or that can never fit, holds up nobody.
func (t turns) decide(runs []agent.Run) decision {
	d := decision{reasons: map[agent.ID]string{}, soon: map[agent.ID]bool{}, waiting: map[string]int{}}
	queue, byName := t.line(runs)
	starting, promised := taken(runs)
	held := ""
	for _, run := range queue {
		kind, reason := t.waits(run, byName, &d.wake)
		if reason == "" {
			kind, reason = metrics.ForMemory, held
		}
		if reason == "" {
			if reason = t.full(run, promised); reason != "" {
				held = fmt.Sprintf("it waits behind %s, which waits for memory", run.Spec.Name)
			}
		}
		if reason == "" && starting >= t.atOnce {
			kind, reason = metrics.ForStarts, fmt.Sprintf("%d others are being started", starting)
		}
		if reason != "" {
			d.reasons[run.Spec.ID] = reason
			d.waiting[kind]++
			if kind == metrics.ForStarts {
				d.soon[run.Spec.ID] = true
			}
			continue
		}
		d.start = append(d.start, run)
		promised += run.Spec.Limits.MemoryBytes
		starting++
	}
	return d
}

// line is the queue in its order, and all runs by name.
func (t turns) line(runs []agent.Run) (queue []agent.Run, byName map[string]*agent.Run) {
	byName = map[string]*agent.Run{}
	for i, run := range runs {
		byName[run.Spec.Name] = &runs[i]
		// One that is marked for stop never starts: it is about to leave.
		if phase := run.Phase(); phase == agent.PhaseWaiting || phase == agent.PhaseScheduled {
			queue = append(queue, run)
		}
	}
	slices.SortStableFunc(queue, func(a, b agent.Run) int {
		return cmp.Or(cmp.Compare(t.standing(b), t.standing(a)), a.Turn.Since.Compare(b.Turn.Since), cmp.Compare(a.Spec.ID, b.Spec.ID))
	})
	return queue, byName
}

// taken is what those that start or run have already: places among the starts,
// and memory in bytes, by their limits and not by what they use.
func taken(runs []agent.Run) (starting int, promised int64) {
	for _, run := range runs {
		switch run.State {
		case agent.StateStarting:
			starting++
			promised += run.Spec.Limits.MemoryBytes
		case agent.StateRunning:
			promised += run.Spec.Limits.MemoryBytes
		}
	}
	return starting, promised
}

// risesEach is how long a run waits for one more point of priority.
const risesEach = time.Minute

// standing is the priority with what waiting added to it.
func (t turns) standing(run agent.Run) int {
	since := run.Turn.Since
	if run.Turn.NotBefore.After(since) {
		since = run.Turn.NotBefore
	}
	return run.Spec.Priority + int(max(0, t.now.Sub(since)/risesEach))
}

// waits says what a run waits for that is not a place on the host.
func (t turns) waits(run agent.Run, byName map[string]*agent.Run, wake *time.Time) (kind, reason string) {
	if t.draining {
		return metrics.ForDrain, "cloved is drained for maintenance, until clove drain --undo"
	}
	if run.Phase() == agent.PhaseScheduled {
		reason, next := waitsForTime(run)
		*wake = sooner(*wake, next)
		return metrics.ForTime, reason
	}
	if due := run.Turn.NotBefore; due.After(t.now) {
		*wake = sooner(*wake, due)
		return metrics.ForTime, "it starts at " + due.Format(time.RFC3339)
	}
	for _, name := range run.Spec.After {
		first := byName[name]
		if first != nil && run.Owner.UID != 0 && first.Owner.UID != run.Owner.UID {
			first = nil // somebody took the name over: what theirs does is not told
		}
		if reason := unready(first, name); reason != "" {
			return metrics.ForOrder, reason
		}
	}
	if wanted := run.Spec.Limits.MemoryBytes; t.memoryBytes > 0 && wanted > t.memoryBytes {
		return metrics.ForMemory, fmt.Sprintf("it wants %d MiB of memory, and all agents together may have %d MiB: raise memory_share, or remove it", wanted>>20, t.memoryBytes>>20)
	}
	return "", ""
}

// waitsForTime says when a schedule starts a run. That its time has come is
// noted before turns are given (keepTime).
func waitsForTime(run agent.Run) (reason string, next time.Time) {
	times, err := crontab.Parse(run.Spec.Schedule)
	if err != nil {
		return "its schedule cannot be read: " + err.Error(), next
	}
	if next = nextTime(run, times); next.IsZero() {
		return "its schedule has no time to come", next
	}
	return "its schedule starts it at " + next.Format(time.RFC3339), next
}

// unready says why a run that must come first has not.
func unready(first *agent.Run, name string) string {
	if first == nil {
		return fmt.Sprintf("it comes after %s, which does not exist", name)
	}
	last := first.LastRecord()
	switch {
	case first.State == agent.StateRunning, last != nil && last.ExitCode == 0:
		return ""
	case first.State == agent.StateEnded:
		return fmt.Sprintf("it comes after %s, which failed: restart that, or remove this", name)
	}
	return fmt.Sprintf("it comes after %s, which is %s", name, first.State)
}

// full says why there is no memory for a run.
func (t turns) full(run agent.Run, promised int64) string {
	wanted := run.Spec.Limits.MemoryBytes
	if t.memoryBytes == 0 || promised+wanted <= t.memoryBytes {
		return ""
	}
	return fmt.Sprintf("it wants %d MiB of memory, and %d of %d MiB are promised", wanted>>20, promised>>20, t.memoryBytes>>20)
}
