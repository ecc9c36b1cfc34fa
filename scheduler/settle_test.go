package scheduler

import (
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// Changes come one after the other, in an order that a crash does not alter: distorted times,
// the stop, the schedule, the end.
func TestSettle(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	const everyTen = "CRON_TZ=UTC */10 * * * *"
	failing := func(r *agent.Run) {
		endedAt(15)(r)
		r.Record.ExitCode = 1
		r.Spec.Restart = agent.Restart{Policy: agent.RestartOnFailure, Max: 1}
	}
	due := func(r *agent.Run) { r.Deadline = at(5) }
	for _, c := range []struct {
		what  string
		run   agent.Run
		now   time.Time
		whats []agent.RunEventKind
		phase agent.Phase
		wake  time.Time
	}{
		{"nothing to do", queuedRun("a", 0, nil), noon, nil, agent.PhaseWaiting, time.Time{}},
		{"its time has come", on(everyTen, nil), at(10), []agent.RunEventKind{agent.RunDue}, agent.PhaseWaiting, at(20)},
		{"skipped, and then restarted by its policy", on(everyTen, failing), at(16), []agent.RunEventKind{agent.RunSkipped, agent.RunRequeued}, agent.PhaseWaiting, at(20)},
		{"skipped, given up, and on to its next time", on(everyTen, func(r *agent.Run) { failing(r); r.Queue.Restarts = 1 }), at(16),
			[]agent.RunEventKind{agent.RunSkipped, agent.RunGivenUp, agent.RunRequeued}, agent.PhaseScheduled, at(20)},
		{"stopped in the queue", on(everyTen, func(r *agent.Run) { r.MarkForStop(agent.Stopped{}) }), at(10), []agent.RunEventKind{agent.RunEnded}, agent.PhaseLeaving, time.Time{}},
		{"stopped after its end", on(everyTen, func(r *agent.Run) { failing(r); r.MarkForStop(agent.Stopped{}) }), at(16), nil, agent.PhaseStopped, time.Time{}},
		{"the clock was set back", queuedRun("a", 3600, func(r *agent.Run) { r.Queue.NotBefore = at(61) }), noon, []agent.RunEventKind{agent.RunUpdated}, agent.PhaseWaiting, time.Time{}},
		{"its deadline is to come", queuedRun("a", 0, due), at(4), nil, agent.PhaseWaiting, at(5)},
		{"its deadline came in the queue", queuedRun("a", 0, due), at(5), []agent.RunEventKind{agent.RunEnded}, agent.PhaseWaiting, time.Time{}},
		{"its deadline came in its delay", queuedRun("a", 0, func(r *agent.Run) { due(r); r.Queue.NotBefore = at(9) }), at(6), []agent.RunEventKind{agent.RunEnded}, agent.PhaseWaiting, time.Time{}},
		{"its deadline comes before its next start", on("", func(r *agent.Run) { failing(r); endedAt(1)(r); r.Record.ExitCode = 1; due(r) }), at(1), []agent.RunEventKind{agent.RunRequeued}, agent.PhaseWaiting, at(5)},
		{"its deadline ended it", on("", func(r *agent.Run) { failing(r); due(r) }), at(16), nil, agent.PhaseEnded, time.Time{}},
		{"it was asked to end for its deadline", on("", func(r *agent.Run) {
			failing(r)
			endedAt(4)(r)
			due(r)
			r.Record.ExitCode, r.Record.Error = 1, &agent.Failure{Step: agent.StepDeadline}
		}), at(4), nil, agent.PhaseEnded, time.Time{}},
		{"no deadline, the control", on("", failing), at(16), []agent.RunEventKind{agent.RunRequeued}, agent.PhaseWaiting, time.Time{}},
	} {
		var whats []agent.RunEventKind
		var wake time.Time
		run := c.run
		for len(whats) < 9 {
			may := MayChange(&run, c.now)
			var change Change
			if change, wake = Settle(&run, c.now); change.What == "" {
				break
			}
			if whats = append(whats, change.What); !may {
				t.Errorf("%s: MayChange does not announce %s", c.what, change.What)
			}
			if change.What == agent.RunEnded {
				break
			}
			change.Apply(&run)
			if change.What == agent.RunRequeued { // as the store does
				run.State, run.Record, run.Previous = agent.StateQueued, nil, run.Record
			}
		}
		if !slices.Equal(whats, c.whats) || run.Phase() != c.phase || !wake.Equal(c.wake) {
			t.Errorf("%s: %v, %s, wakes at %v", c.what, whats, run.Phase(), wake)
		}
	}
}
