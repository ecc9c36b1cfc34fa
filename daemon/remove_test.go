package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// With force, a waiting run is removed like one that runs.
func TestRemoveQueuedWithForce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("queued", agent.Owner{}, agent.StateQueued)
	c := r.serve()
	must(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "queued"}, Force: true}))
	_, err := client.Do(within(t), c, methods.RunGet, api.RunParams{Run: "queued"})
	wantCode(t, err, api.CodeNotFound)
}

// A run whose stop is stored does not start, also if cloved or a policy acted at that moment.
// The control is a run that was not stopped.
func TestNotedStopOfAQueuedRunHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	stopped, wanted := r.add("stopped", agent.Owner{}, agent.StateQueued), r.add("wanted", agent.Owner{}, agent.StateQueued)
	for _, run := range []agent.Run{stopped, wanted} {
		_, err := r.records.amend(run.Spec.ID, agent.RunStopRequested, "", func(now *agent.Run) {
			now.Queue.NotBefore = time.Time{}
			if now.Spec.ID == stopped.Spec.ID {
				now.Queue.StopAsked, now.Queue.Stopped = true, &agent.Stopped{By: "uid 0"}
			}
		})
		must(t, err)
	}
	r.serve()
	ran := func(run agent.Run, _ bool) bool { return run.State != agent.StateQueued }
	now, _, err := r.d.cache.until(within(t), stopped.Spec.ID, ran)
	must(t, err)
	if now.State != agent.StateEnded || now.Record.Status != agent.StatusKilled || now.Record.Stopped == nil {
		t.Errorf("%s, %+v", now.State, now.Record)
	}
	if now, _, err = r.d.cache.until(within(t), wanted.Spec.ID, ran); err != nil || now.State != agent.StateRunning {
		t.Errorf("control: %s, %v", now.State, err)
	}
}

// If a policy queues a run again while it is being stopped, the stop neither waits without end
// nor fails.
func TestStopOfARunThatComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("back", agent.Owner{}, agent.StateEnded)
	c := &request{Context: within(t), peer: caller{}, run: run}
	c.run.State = agent.StateRunning // as it was found
	_, err := r.records.requeue(run.Spec.ID, func(*agent.Run) {})
	must(t, err)
	r.serve()
	must(t, r.d.runs().end(c, "back", 0))
	if now, _ := r.d.cache.get(run.Spec.ID); now.State != agent.StateEnded {
		t.Errorf("it is %s", now.State)
	}
}

// The answer to a restart does not have the old reason for waiting: cloved answers after the
// reconciler's next decision.
func TestRestartEndsADelay(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("delayed", agent.Owner{}, agent.StateQueued)
	_, err := r.d.reconciler.look(t.Context())
	must(t, err)
	hasty, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := r.d.runs().restart(&request{Context: hasty, run: run}, api.RestartParams{}); err == nil {
		t.Errorf("an answer before the reconciler looked: %+v", result)
	}
	// The impatient caller's restart ended that delay all the same: the run may run by now.
	r.add("another", agent.Owner{}, agent.StateQueued)
	c := r.serve()
	result, err := client.Do(within(t), c, methods.RunRestart, api.RestartParams{StopParams: api.StopParams{RunParams: api.RunParams{Run: "another"}}})
	if err != nil || result.Reason != "" || result.Run.State != agent.StateRunning {
		t.Errorf("%s, %q, %v", result.Run.State, result.Reason, err)
	}
}

// The same for a run that was stopped in the queue: the reconciler may not have looked since.
func TestRestartOfOneThatWasStoppedInTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("stopped", agent.Owner{}, agent.StateQueued)
	_, err := r.d.reconciler.look(t.Context())
	must(t, err)
	if reason, _ := r.d.reconciler.reason(run.Spec.ID); reason == "" {
		t.Fatal("control: it waits for nothing")
	}
	must(t, r.d.runs().dequeue(&request{Context: t.Context(), run: run}))
	run.State = agent.StateEnded
	hasty, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := r.d.runs().restart(&request{Context: hasty, run: run}, api.RestartParams{}); err == nil {
		t.Errorf("an answer before the reconciler looked: %+v", result)
	}
}

// A run that its policy has queued after the access check is restarted as a waiting run.
func TestRestartOfARunThatComesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("back", agent.Owner{}, agent.StateEnded)
	must(t, r.d.cache.refresh())
	c := &request{Context: within(t), peer: caller{}}
	c.run, _ = r.d.cache.get(run.Spec.ID)
	_, err := r.records.requeue(run.Spec.ID, func(again *agent.Run) { again.Queue.NotBefore = time.Now().Add(time.Hour) })
	must(t, err)
	r.serve()
	if result, err := r.d.runs().restart(c, api.RestartParams{}); err != nil || result.Run.State != agent.StateRunning {
		t.Errorf("%+v, %v", result, err)
	}
}

// A removal is answered after a start under way has ended: that start creates the log again
// before it finds that its run is gone.
func TestRemovalTakesTheLogOfAStartAlong(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		r := newRig(t, nil)
		began, proceed := r.hold("begun")
		c := r.serve()
		s := spec("begun")
		started, removed := make(chan error, 1), make(chan error, 1)
		go func() { _, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s}); started <- err }()
		<-began
		go func() {
			removed <- client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "begun"}, Force: force})
		}()
		_, _, err := r.d.cache.until(within(t), s.ID, func(_ agent.Run, found bool) bool { return !found })
		must(t, err)
		must(t, os.MkdirAll(r.d.options.Paths.Log(s.ID), 0o700))
		proceed()
		must(t, <-removed)
		if _, err := os.Lstat(r.d.options.Paths.Log(s.ID)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("force %v: cannot remove a log: %v", force, err)
		}
		wantCode(t, <-started, api.CodeConflict)
	}
}

// A run with --rm whose start was put off has a log already, which is removed with the run.
// The control is a run that is kept, with its log.
func TestDequeuedRunTakesItsLogAlong(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, forget := range []bool{true, false} {
		run := r.add(fmt.Sprint("forget-", forget), agent.Owner{}, agent.StateQueued)
		must(t, r.records.with(changeSpec(run.Spec.ID, func(s *agent.Spec) { s.Remove = forget })))
		must(t, os.MkdirAll(r.d.options.Paths.Log(run.Spec.ID), 0o700))
		must(t, r.d.runs().dequeue(&request{Context: t.Context(), run: run}))
		if _, err := os.Lstat(r.d.options.Paths.Log(run.Spec.ID)); errors.Is(err, fs.ErrNotExist) != forget {
			t.Errorf("--rm %v: %v", forget, err)
		}
	}
}
