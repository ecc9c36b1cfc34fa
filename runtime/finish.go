package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/store"
)

// finish ends whatever is left, writes the record and takes back every step.
//
// The order matters. Processes end first, because everything else relies on there being no
// writer any more. The figures are read before the teardown removes the cgroup and the layer, and
// the layer is inspected while it is mounted. The record is stored after the teardown,
// because it gives back the lease: from then on another run may have the ids. The
// directory, whose lock is the sign of life, goes last.
func (l *launch) finish(seen outcome, signals *signals) (agent.Record, error) {
	began := time.Now()
	failures := []error{l.empty(), kinship{l}.end()}
	ended := time.Now()
	l.calls.close()
	l.uses.settle(l.tree)
	// Data that an agent sent before it ended by itself may still leave. The bytes of UDP flows
	// and the refusals that were only counted come with the gate's end.
	l.gate.end(seen.cause == causeNone)
	stats := l.measure(&seen)
	kinship{l}.blameParent(&seen)
	l.denials.close(l.runtime.withStore)
	if l.pipes != nil {
		l.pipes.mail.hurry(seen.cause == causeNone)
		// What was held while a person was asked comes last, and still needs the raw mode; ctrl-c ends the wait for it.
		given := time.AfterFunc(time.Second, seen.terminal.restore)
		l.pipes.drain(signals.incoming)
		given.Stop()
		seen.output = l.pipes.written.Load()
	}
	seen.terminal.restore()
	// gofail: var finishKilled string
	// failpoint(finishKilled, "")

	l.keep = l.keepsLayer()
	record := l.record(seen, stats, ended)
	if seen.cause == causeNone {
		l.runtime.panicked(&record)
	}
	if !record.NotStarted() {
		l.uses.keep(record, l.calls != nil && !l.calls.unseen(), l.plan, l.spec.Remove, l.streams, l.runtime.paths.Observed(l.spec.ID))
	}
	failures = append(failures, l.undo.Run())
	// gofail: var finishTornDown string
	// failures = append(failures, failpoint(finishTornDown, ""))

	l.trace.step("teardown", began)
	if l.streams.Drained != nil && !l.occupied { // else our end of a terminal stays in use
		l.streams.Drained()
	}
	began = time.Now()
	if err := errors.Join(failures...); err != nil {
		return record, l.leave(record, err)
	}
	if err := l.runtime.conclude(l.run, agent.EventRecorded, record, l.keep); err != nil && !superseded(err) {
		return record, l.leave(record, err)
	}
	if l.spec.Remove {
		// Nothing asks for their files any more. What fails here is in lists, and can be removed from there.
		_ = l.runtime.withStore(func(s *store.Store) error { return l.runtime.removeBelow(s, l.run, false) })
	}
	// gofail: var finishRecorded string
	// failpoint(finishRecorded, "")

	err := l.dir.remove()
	l.trace.step("record", began)
	return record, err
}

// sessionPatience bounds the wait for exec sessions, copies and readers of the layer.
// Each ends by itself within seconds; a reader is cancelled.
const sessionPatience = 2 * time.Minute

// empty ends every process in the sandbox, and every session. A process that does
// not end within its time is an error, and the teardown goes on: the kernel removes what
// hangs with clove's own end, and `clove gc` the rest.
func (l *launch) empty() error {
	failures := []error{killAll(l.group)}
	if l.box != nil {
		failures = append(failures, l.box.reap(killTimeout))
	}
	// The second kill is for a session that was starting and brought a process in after
	// the first.
	failures = append(failures, l.endSessions(sessionPatience), killAll(l.group))
	return errors.Join(failures...)
}

// endSessions waits for the sessions to end. Without PID 1 nothing can enter any
// more; a session that was starting fails.
func (l *launch) endSessions(patience time.Duration) error {
	gone := make(chan struct{})
	go func() { l.sessions.Wait(); close(gone) }()
	select {
	case <-gone:
		return nil
	case <-time.After(patience):
		// They may hold the launch thread, so nothing can be taken back on it.
		l.occupied = true
		l.undo.Release()
		return fmt.Errorf("cannot end an exec session, a copy or a reader of the layer within %s", patience)
	}
}

// superseded reports whether the store has ended the run already, or forgotten it:
// then this record is not needed.
func superseded(err error) bool {
	kind := agent.KindOf(err)
	return kind == agent.KindConflict || kind == agent.KindNotFound
}

// leaveRetry is between two attempts to leave a record where there is no space.
const leaveRetry = time.Second

// leave writes the record where the next clove finds it, and keeps the lease.
// A detached run has no caller to report its end to, so it waits until that works.
func (l *launch) leave(record agent.Record, cause error) error {
	err := l.dir.keep(record)
	if err != nil && l.streams.Waits != nil {
		l.streams.Waits(record)
	}
	for err != nil && l.spec.Detached {
		<-time.After(leaveRetry)
		err = l.dir.keep(record)
	}
	l.dir.letGo()
	return &agent.Error{Step: "tear down", Message: "something of " + l.spec.Name + " is left",
		Hint: "`clove check` lists it, `clove gc` removes it", Err: errors.Join(cause, err)}
}

// keep writes the record into the directory, all of it or nothing. The directory
// may have been removed.
func (d *runDirectory) keep(record agent.Record) error {
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.path, runMode); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(d.path, recordFile), 0o600, text)
}

// belowLimit reports whether it was not the agent's own memory limit that had no more. v1
// counts nothing of that, so there the peak decides: at its own limit it is within a huge
// page of it.
func belowLimit(stats cgroups.Stats, limit int64) bool {
	if own := stats.MemoryLimitOOMs; own != nil {
		return *own == 0
	}
	peak := stats.MemoryPeakBytes
	return peak != nil && *peak < limit-limit/4
}

// measure reads what the kernel counted, while the cgroup and the layer are
// still there.
func (l *launch) measure(seen *outcome) cgroups.Stats {
	var stats cgroups.Stats
	if l.group != nil {
		stats, _ = l.group.Stats() // a figure that is missing stays absent
		seen.oomKills, _ = l.group.OOMKills()
		seen.below = belowLimit(stats, l.spec.Limits.MemoryBytes)
		seen.inTree = slices.ContainsFunc(cgroups.TreesAbove(l.run.Lease.Cgroups), (*cgroups.Group).Exhausted)
		// Then no agent has used anything: all that the cgroup counted belongs to the
		// launch.
		if !seen.launched {
			seen.spent = spentAll(stats)
		}
		if stats = stats.Since(launchUse(seen.spent)); stats.CPU != nil {
			seen.cpu = stats.CPU
		}
	}
	// The launch's part cannot be taken out of a peak, so the record shows the launch's own
	// peak beside it.
	seen.memoryPeak = stats.MemoryPeakBytes
	if l.tree != nil {
		if usage, err := l.tree.Usage(); err == nil {
			seen.diskUsed = &usage.Bytes
			switch {
			case usage.Full:
				seen.diskFull = &agent.LimitHit{Name: agent.ControlDisk, Value: l.spec.Limits.DiskBytes, Peak: &usage.Bytes}
			case usage.NoFiles:
				seen.diskFull = &agent.LimitHit{Name: agent.LimitDiskFiles, Value: usage.Files, Peak: &usage.Inodes}
			}
		}
	}
	return stats
}

// keepsLayer reports whether the writable layer outlives the run: only if the
// agent changed something that diff could show.
func (l *launch) keepsLayer() bool {
	if l.spec.Remove {
		return false
	}
	if l.tree == nil {
		return l.run.Layer != "" // an earlier start's: this one did not get to it
	}
	if l.occupied {
		return true // the thread that could look is in use
	}
	changed := false
	err := l.thread.Do(func() (err error) { changed, err = l.tree.Changed(); return err })
	return err != nil || changed // in doubt, nothing is lost
}

// closeTree unmounts the root; the layer's image goes with it unless it is kept.
func (l *launch) closeTree() error {
	if l.keep {
		return l.tree.Close()
	}
	return l.tree.Discard()
}
