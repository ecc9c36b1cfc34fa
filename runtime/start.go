package runtime

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
)

// attempt is the launch's steps on a goroutine of their own: one may hang in the
// kernel, where neither a signal nor the end of a context reaches it.
type attempt struct {
	begun  chan string   // the step that begins
	over   chan error    // the steps have ended
	halted chan struct{} // closed once reason is set: no further step begins
	reason error
}

// begin is called before each step.
func (a *attempt) begin(step string) error {
	select {
	case a.begun <- step:
		return nil
	case <-a.halted:
		return a.reason
	}
}

// hungError is a start that was given up in a step that did not come back: what it
// holds is in use, and cannot be taken back.
type hungError struct{ error }

func (e hungError) Unwrap() error { return e.error }

// bringUp executes the steps. It gives up when one makes no progress for the spec's
// time, when a signal says so, or done is closed.
func (l *launch) bringUp(done <-chan struct{}, signals *signals) error {
	a := &attempt{begun: make(chan string), over: make(chan error, 1), halted: make(chan struct{})}
	go func() { a.over <- l.perform(a.begin) }()
	bound := l.spec.StartBound()
	timer := time.NewTimer(bound)
	defer timer.Stop()
	step := stepPrepare
	for {
		select {
		case step = <-a.begun:
			if l.streams.Begins != nil {
				l.streams.Begins(step)
			}
			timer.Reset(bound)
		case err := <-a.over:
			return err
		// Per step, not for all together: a slow disk delays many steps, a hang one.
		case <-timer.C:
			return l.halt(a, step, noProgress(step, bound))
		case received := <-signals.incoming:
			signals.early = append(signals.early, received)
			if slices.Contains(endingSignals, received) {
				return l.halt(a, step, interrupted(step, received))
			}
		case <-done:
			return l.halt(a, step, interrupted(step, nil))
		}
	}
}

func noProgress(step string, bound time.Duration) error {
	return &agent.Error{Step: step, Message: fmt.Sprintf("the start made no progress for %s", bound),
		Hint: "`clove check` names what cannot be ended; a slow disk or host needs a longer --start-timeout"}
}

// interrupted: received is nil where no signal said so.
func interrupted(step string, received os.Signal) error {
	how := "a stop was requested"
	if number, ok := received.(syscall.Signal); ok {
		how = unix.SignalName(number) + " came"
	}
	return &agent.Error{Step: step, Message: how + " before the agent had started"}
}

// halt lets no further step begin, and waits for the one under way. What it has
// started is killed when it does not come back by itself. If that was the last step, and
// it did its work, the agent has its orders: then nothing is halted, and the
// supervisor gets the early signals.
func (l *launch) halt(a *attempt, step string, reason error) error {
	a.reason = reason
	close(a.halted)
	for _, killed := range []bool{false, true} {
		if killed {
			l.killStarted()
		}
		select {
		case err := <-a.over:
			// After the kill even a step that did its work is of no use: what it started is
			// dead.
			if err == nil && !killed {
				return nil
			}
			return reason // what the step says is a consequence
		case <-time.After(letGoTime):
		}
	}
	return hungError{reason}
}

// killStarted kills what a step under way may wait for.
func (l *launch) killStarted() {
	if l.known.Load() { // else the agent has no cgroup
		killInside(l.run.Lease.Cgroups)
	}
	children, _ := processChildren() // of a start in the foreground, or of a supervisor: all are this run's
	for _, pid := range children {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// disown ends a start of a run that is not known. A hanging process is noted as abandon
// does it: the caller refuses a detached run, and one in the foreground leaves no record.
func (l *launch) disown(cause error) error {
	if hung := (hungError{}); !errors.As(cause, &hung) {
		return cause
	}
	dir := &runDirectory{path: l.runtime.paths.runDirectory(l.spec.ID)}
	note := stuckNote{Name: l.spec.Name, Step: agent.FailureOf(cause).Step, Processes: family(nil)}
	aside(func() { _ = errors.Join(os.MkdirAll(dir.path, runMode), dir.noteStuck(note)) }) // clove's own directories may be what hangs
	return cause
}

// abandon ends a run whose start hangs: the record is stored, what hangs is noted for
// `clove check`, and whatever the kernel still holds goes with this process.
func (l *launch) abandon(cause error) (agent.Record, error) {
	// Not with l itself, which the step that hangs may change.
	known := &launch{runtime: l.runtime, spec: l.spec, run: l.run, probes: l.probes, held: l.held}
	record := known.record(outcome{startError: cause}, cgroups.Stats{}, time.Now())
	failure := agent.FailureOf(cause)
	err := errors.Join(l.dir.noteStuck(stuckNote{Name: l.spec.Name, Step: failure.Step, Processes: family(l.run.Lease)}),
		l.runtime.conclude(l.run, agent.EventRecorded, record, l.run.Layer != ""))
	if err != nil {
		return record, l.leave(record, err)
	}
	l.dir.letGo()
	return record, nil
}
