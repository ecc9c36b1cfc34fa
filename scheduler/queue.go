package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"clove.run/clove/agent"
)

// Queue is what a decision depends on besides the runs themselves.
type Queue struct {
	Now      time.Time
	Memory   Memory
	AtOnce   int               // starts that may go on at the same time
	Draining bool              // nothing is started
	Panic    string            // the reason of a panic, until it is cleared: nothing is started; empty: there is none
	Held     map[agent.ID]Hold // runs whose last start failed without a record
}

// Memory is what the host has for agents, in bytes.
type Memory struct {
	Limit     int64 // of what all agents together count with; 0: nothing waits for memory
	Used      int64 // by all agents that live
	Available int64 // on the host, for anything
	Floor     int64 // of Available; below it nothing starts
}

// Reserve is what an agent with this memory limit counts with besides what it uses, in
// bytes. An eighth: most agents use a small part of their limit most of the time, and those
// that use more at once than there is meet the limit of all agents together.
func Reserve(limit int64) int64 { return min(limit, max(limit/8, agent.MemoryFloorBytes)) }

// ReserveOf is Reserve of a run. One that an agent started has none: its memory is a part of that agent's,
// which the cgroup above both limits.
func ReserveOf(run agent.Run) int64 {
	if run.Parent != "" {
		return 0
	}
	return Reserve(run.Spec.Limits.MemoryBytes)
}

// Reserves adds up the reserves of the runs that start or run. Foreground runs count too:
// their memory is as real.
func Reserves(runs []agent.Run) (sum int64) {
	for i := range runs {
		if state := runs[i].State; state == agent.StateStarting || state == agent.StateRunning {
			sum += ReserveOf(runs[i])
		}
	}
	return sum
}

// Hold keeps a run from its next start for a while.
type Hold struct {
	Until  time.Time
	Reason string // for people, in place of the time
}

// Decision is what the reconciler is to do now.
type Decision struct {
	Start   []agent.Run // in this order
	Waiting map[agent.ID]Wait
	Wake    time.Time // when to ask again at the latest; zero: when something changes
}

// Decide looks at every run. The queue is ordered by priority, then by the time
// of joining; a run that does not fit holds up those behind it, or small ones
// would starve a large one. Waiting raises the priority, or important ones that
// keep coming would starve a less important one. A run that waits for its time
// or for another run, or that can never fit, holds up none.
func (q Queue) Decide(runs []agent.Run) Decision {
	d := Decision{Waiting: map[agent.ID]Wait{}}
	queue, byName := q.order(runs)
	host := loadOf(runs)
	for _, run := range queue {
		wait := q.unready(run, byName, &d.Wake)
		if wait.For == "" {
			wait = q.noRoom(run, &host, &d.Wake)
		}
		if wait.For == "" {
			d.Start = append(d.Start, *run)
			// A run that this decision starts counts for the rest of it: no supervisor has
			// stored anything yet.
			host.starting++
			host.reserved += ReserveOf(*run)
			continue
		}
		// For people, why the start failed says more than until when it is held back.
		if hold, held := q.Held[run.Spec.ID]; held {
			wait.Reason = hold.Reason
		}
		d.Waiting[run.Spec.ID] = wait
	}
	return d
}

// order is the queue in its order, and all runs by name. One that is marked for
// stop is not in it: it leaves with the next Settle.
func (q Queue) order(runs []agent.Run) (queue []*agent.Run, byName map[agent.RunName]*agent.Run) {
	byName = map[agent.RunName]*agent.Run{}
	for i := range runs {
		byName[runs[i].Name()] = &runs[i]
		if phase := runs[i].Phase(); phase == agent.PhaseWaiting || phase == agent.PhaseScheduled {
			queue = append(queue, q.held(&runs[i]))
		}
	}
	slices.SortStableFunc(queue, func(a, b *agent.Run) int {
		// The id at last, so that two looks at the same runs decide the same.
		return cmp.Or(cmp.Compare(q.rank(b), q.rank(a)), a.Queue.Since.Compare(b.Queue.Since), cmp.Compare(a.Spec.ID, b.Spec.ID))
	})
	return queue, byName
}

// held is the run, with the time of its hold where that is to come.
func (q Queue) held(run *agent.Run) *agent.Run {
	hold := q.Held[run.Spec.ID]
	if !hold.Until.After(q.Now) || !hold.Until.After(run.Queue.NotBefore) {
		return run
	}
	later := *run // the caller's stays as it is
	later.Queue.NotBefore = hold.Until
	return &later
}

// risesEach is how long a run waits for one more point of priority.
const risesEach = time.Minute

// rank is the priority with what waiting added to it. A delay is no waiting.
func (q Queue) rank(run *agent.Run) int {
	since := run.Queue.Since
	if run.Queue.NotBefore.After(since) {
		since = run.Queue.NotBefore
	}
	return run.Spec.Priority + int(max(0, q.Now.Sub(since)/risesEach))
}

// load is what the host has given away.
type load struct {
	starting int
	reserved int64  // bytes of memory, besides what agents use
	heldUpBy string // name of the run that waits for memory, and all behind it with it
}

func loadOf(runs []agent.Run) load {
	l := load{reserved: Reserves(runs)}
	for i := range runs {
		if runs[i].State == agent.StateStarting {
			l.starting++
		}
	}
	return l
}

// memoryPause is between two looks at the memory that agents use. The kernel has no event
// for less of it.
const memoryPause = 5 * time.Second

// noRoom says what a run that could start lacks on the host, and brings wake forward to the
// time at which it may have it.
func (q Queue) noRoom(run *agent.Run, host *load, wake *time.Time) Wait {
	m, wanted, own := q.Memory, run.Spec.Limits.MemoryBytes, run.Parent == ""
	switch {
	// Before the room itself is looked at: a small run that fits must not pass a large one
	// that waits, again and again.
	case own && host.heldUpBy != "":
		return wait(ForMemory, "it waits behind %s, which waits for memory", host.heldUpBy)
	case own && m.Limit > 0 && (m.Used+host.reserved+Reserve(wanted) > m.Limit || m.Available < m.Floor):
		host.heldUpBy = run.Spec.Name
		*wake = Sooner(*wake, q.Now.Add(memoryPause))
		return wait(ForMemory, "it wants %d MiB of memory, of which %d count at first: agents use %d MiB and have %d MiB in reserve, of %d MiB; the host has %d MiB available, and needs %d MiB for a start",
			wanted>>20, Reserve(wanted)>>20, m.Used>>20, host.reserved>>20, m.Limit>>20, m.Available>>20, m.Floor>>20)
	case host.starting >= q.AtOnce:
		return wait(ForStarts, "%d others are being started", host.starting)
	}
	return Wait{}
}

// The kinds of waits, which are also the values of a metric's label.
const (
	ForPanic  = "panic"  // clove panic --clear
	ForDrain  = "drain"  // the drain's end
	ForTime   = "time"   // a delay, a backoff or a schedule
	ForOrder  = "order"  // another run, which comes first
	ForMemory = "memory" // memory to start with, or one before it that wants some
	ForStarts = "starts" // others that are being started
)

// Waits lists the kinds.
var Waits = []string{ForPanic, ForDrain, ForTime, ForOrder, ForMemory, ForStarts}

// Wait is why a queued run does not start now.
type Wait struct {
	For    string // one of Waits; empty: it does not wait
	Reason string // for people
}

// Short reports whether the wait passes by itself in a moment.
func (w Wait) Short() bool { return w.For == ForStarts }

// wait makes a Wait with a formatted reason.
func wait(kind, format string, values ...any) Wait { return Wait{kind, fmt.Sprintf(format, values...)} }

// unready says what a run waits for that is not room on the host, and brings
// wake forward to the time that it waits for.
func (q Queue) unready(run *agent.Run, byName map[agent.RunName]*agent.Run, wake *time.Time) Wait {
	switch due := run.Queue.NotBefore; {
	case q.Panic != "":
		return wait(ForPanic, "nothing starts after clove panic (%s), until clove panic --clear", q.Panic)
	case q.Draining:
		return wait(ForDrain, "cloved is drained for maintenance, until clove drain --undo")
	case run.Phase() == agent.PhaseScheduled:
		reason, next := waitsForTime(run)
		*wake = Sooner(*wake, next)
		return Wait{ForTime, reason}
	case due.After(q.Now):
		*wake = Sooner(*wake, due)
		return wait(ForTime, "it starts at %s", due.Format(time.RFC3339))
	}
	for _, after := range run.Afters() {
		if reason := comesFirst(byName[after.RunName], after, after.For(run.Owner.UID)); reason != "" {
			return Wait{ForOrder, reason}
		}
	}
	// Accepted when the share was larger. Here and not in noRoom: it may wait for ever, and
	// must not hold up those behind it.
	if wanted, most := run.Spec.Limits.MemoryBytes, q.Memory.Limit; most > 0 && wanted > most {
		return wait(ForMemory, "it wants %d MiB of memory, and all agents together may have %d MiB: raise memory_share, or remove it", wanted>>20, most>>20)
	}
	return Wait{}
}

// comesFirst says why a run that must come first has not come so far; empty: it has.
func comesFirst(first *agent.Run, after agent.After, name string) string {
	switch {
	case first == nil:
		return fmt.Sprintf("it comes after %s, which does not exist", name)
	case after.Met(first):
		return ""
	case first.State == agent.StateEnded && first.Record.ExitCode == 0:
		return fmt.Sprintf("it comes after %s, which ended before it was ready: restart that, or remove this", name)
	case first.State == agent.StateEnded:
		return fmt.Sprintf("it comes after %s, which failed: restart that, or remove this", name)
	case first.State == agent.StateRunning && after.Condition == agent.AfterReady:
		return fmt.Sprintf("it comes after %s, which is not ready", name)
	}
	return fmt.Sprintf("it comes after %s, which is %s", name, first.State)
}

// Sooner is the earlier of two times, of which zero is none.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
