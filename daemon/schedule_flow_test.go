package daemon

import (
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/scheduler"
)

// timed stores a run with a schedule, as a cloved that died hours ago left it.
func (r *rig) timed(name string, change func(*agent.Run)) agent.Run {
	r.t.Helper()
	run := agent.Run{Spec: spec(name), Queue: agent.QueueState{Scheduled: true, Settled: time.Now().Add(-3 * time.Hour)}}
	run.Spec.Schedule = "@hourly"
	if change != nil {
		change(&run)
	}
	run, err := r.records.enqueue(run)
	must(r.t, err)
	return run
}

// reaches waits until a run is as wanted.
func (r *rig) reaches(id agent.ID, wanted func(agent.Run) bool) agent.Run {
	r.t.Helper()
	run, _, err := r.d.cache.until(within(r.t), id, func(run agent.Run, found bool) bool { return found && wanted(run) })
	must(r.t, err)
	return run
}

// whats returns the events of the run with this name.
func (r *rig) whats(name string) (all []agent.RunEventKind) {
	past, _, _ := r.d.cache.since(0)
	for _, o := range past {
		if o.Name == name {
			all = append(all, o.Kind)
		}
	}
	return all
}

func waiting(run agent.Run) bool { return run.Phase() == agent.PhaseScheduled }
func running(run agent.Run) bool { return run.State == agent.StateRunning }

// Times that were missed without a cloved are made up for once; the next start is at the next
// time, with a new layer.
func TestAMissedTimeIsMadeUpForOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.timed("hourly", nil).Spec.ID
	keeping := r.timed("keeping", func(run *agent.Run) { run.Spec.KeepFiles = true }).Spec.ID
	c := r.serve()
	for name, id := range map[string]agent.ID{"hourly": id, "keeping": keeping} {
		r.reaches(id, running)
		r.end(name, 0)
		run := r.reaches(id, waiting)
		if run.Previous == nil || run.Queue.Starts != 1 || run.Queue.Fresh != (name == "hourly") {
			t.Errorf("%s: %+v", name, run)
		}
		must(t, r.d.reconciler.decidedAnew(within(t))) // it is queued a moment before its reason is known
		result, err := client.Do(within(t), c, methods.RunGet, api.RunParams{Run: name})
		must(t, err)
		if in := time.Until(result.Run.Queue.Next); in <= 0 || in > time.Hour || !strings.HasPrefix(result.Reason, "its schedule starts it at") {
			t.Errorf("%s: next in %v, %q", name, in, result.Reason)
		}
	}
	if names := r.names(); len(names) != 2 {
		t.Errorf("started %q", names)
	}
	pruned, err := client.Do(within(t), c, methods.RunPrune, api.Nothing{})
	must(t, err)
	if len(pruned.Removed) != 0 {
		t.Errorf("pruned %v", pruned.Removed)
	}
}

// A time that comes while the run is busy is skipped, with an event.
func TestABusyRunSkipsItsTime(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("busy", agent.Owner{}, agent.StateRunning)
	_, err := r.records.amend(run.Spec.ID, agent.RunUpdated, "", func(run *agent.Run) {
		run.Spec.Schedule, run.Queue.Settled = "@hourly", time.Now().Add(-3*time.Hour)
	})
	must(t, err)
	r.serve()
	settled := r.reaches(run.Spec.ID, func(run agent.Run) bool { return time.Since(run.Queue.Settled) < time.Hour })
	if !running(settled) || !slices.Contains(r.whats("busy"), agent.RunSkipped) || len(r.names()) != 1 {
		t.Errorf("%+v, %q", settled.Queue, r.whats("busy"))
	}
}

// A stop ends the schedule, and a restart activates it again and starts the run at once, also
// if it waits.
func TestStopEndsTheSchedule(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	s := spec("daily")
	s.Schedule = "@daily"
	result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s})
	must(t, err)
	if !waiting(result.Run) || result.Reason == "" || result.Run.Queue.Next.IsZero() {
		t.Errorf("%+v", result)
	}
	must(t, client.Perform(within(t), c, methods.RunStop, api.StopParams{RunParams: api.RunParams{Run: "daily"}}))
	stopped := r.reaches(s.ID, func(run agent.Run) bool { return run.State == agent.StateEnded })
	if stopped.Record.Stopped == nil || scheduler.StartsAgain(stopped) || !scheduler.WithNext(stopped).Queue.Next.IsZero() {
		t.Errorf("%+v", stopped)
	}
	for range 2 { // after its end, and in the queue
		_, err = client.Do(within(t), c, methods.RunRestart, api.RestartParams{StopParams: api.StopParams{RunParams: api.RunParams{Run: "daily"}}})
		must(t, err)
		if run := r.reaches(s.ID, running); run.Queue.Stopped != nil {
			t.Errorf("%+v", run.Queue)
		}
		r.end("daily", 0)
		r.reaches(s.ID, waiting)
	}
	must(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "daily"}}))
}

// Within one time of the schedule the policy restarts a run that failed, and gives up only
// until the next time.
func TestPolicyWithinATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.timed("flaky", func(run *agent.Run) {
		run.Spec.Restart = agent.Restart{Policy: agent.RestartOnFailure, Max: 1}
	}).Spec.ID
	r.serve()
	for n := range 2 {
		r.reaches(id, func(run agent.Run) bool { return running(run) && run.Queue.Restarts == n })
		r.end("flaky", 3)
	}
	run := r.reaches(id, waiting)
	if whats := r.whats("flaky"); run.Queue.GivenUp || run.Queue.Restarts != 0 || !slices.Contains(whats, agent.RunGivenUp) {
		t.Errorf("%+v, %q", run.Queue, whats)
	}
}

func TestSchedulesThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	for what, change := range map[string]func(*agent.Spec){
		"none":           func(s *agent.Spec) { s.Schedule = "now and then" },
		"with --rm":      func(s *agent.Spec) { s.Schedule, s.Remove = "@daily", true },
		"always":         func(s *agent.Spec) { s.Schedule, s.Restart.Policy = "@daily", agent.RestartAlways },
		"keep for none":  func(s *agent.Spec) { s.KeepFiles = true },
		"never a time":   func(s *agent.Spec) { s.Schedule = "0 0 31 2 *" },
		"after a circle": func(s *agent.Spec) { s.After = []string{"a"} },
	} {
		s := spec("a")
		change(&s)
		_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s})
		if what == "after a circle" {
			wantCode(t, err, api.CodeNotFound) // there is no a yet
			continue
		}
		wantCode(t, err, api.CodeParams)
		if err != nil && api.ErrorOf(err).Data.Hint == "" {
			t.Errorf("%s: no hint in %v", what, err)
		}
	}
	listed, err := client.Collect(client.All(within(t), c, methods.RunList, api.ListParams{All: true}))
	must(t, err)
	if len(listed) != 0 {
		t.Errorf("stored: %+v", listed)
	}
}

// Runs that would wait for each other without end are refused, whichever of them closes the
// circle; --after also accepts a prefix of an id.
func TestCirclesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	must(t, client.Perform(within(t), c, methods.Drain, api.DrainParams{On: true}))
	start := func(name string, after ...string) (agent.Run, error) {
		s := spec(name)
		s.After = after
		result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s})
		return result.Run, err
	}
	first, err := start("first")
	must(t, err)
	second, err := start("second", string(first.Spec.ID)[:8])
	must(t, err)
	if !slices.Equal(second.Spec.After, []string{"first"}) {
		t.Errorf("it comes after %q", second.Spec.After)
	}
	_, err = start("third", "second")
	must(t, err)
	must(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "first"}}))
	_, err = start("first", "third")
	wantCode(t, err, api.CodeParams)
	_, err = start("other", "third")
	must(t, err)
	_, err = client.Do(within(t), c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: "other"}, Name: "first"})
	wantCode(t, err, api.CodeParams)
}

// A drained cloved stays drained over a restart.
func TestDrainOutlivesCloved(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	must(t, r.d.reconciler.drain(true))
	r.d = New(r.d.options)
	r.d.reconciler.starter = r
	c := r.serve()
	result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("late")})
	must(t, err)
	if result.Run.State != agent.StateQueued || !strings.Contains(result.Reason, "drained") {
		t.Errorf("%+v", result)
	}
	must(t, client.Perform(within(t), c, methods.Drain, api.DrainParams{}))
	r.reaches(result.Run.Spec.ID, running)
}
