package daemon

import (
	"context"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

func TestStartRunsAndAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("one")})
	must(t, err)
	if result.Run.State != agent.StateRunning || !result.Run.Spec.Detached || result.Reason != "" {
		t.Errorf("%+v", result)
	}
	listed, err := client.Collect(client.All(within(t), c, methods.RunList, api.ListParams{}))
	must(t, err)
	if len(listed) != 1 || listed[0].Run.Spec.Name != "one" {
		t.Errorf("%+v", listed)
	}
	_, err = client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("one")})
	wantCode(t, err, api.CodeConflict)
}

// A start that fails is an error and has a record.
func TestStartFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.refuse["bad"] = true
	c := r.serve()
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("bad")})
	wantCode(t, err, api.CodeUnenforceable)
	result, err := client.Do(within(t), c, methods.RunWait, api.RunParams{Run: "bad"})
	must(t, err)
	if result.Record.Status != agent.StatusStartFailed || result.Record.ExitCode != agent.ExitStartFailed {
		t.Errorf("%+v", result.Record)
	}
}

func TestQueueHasReasons(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("first"), DelayNS: int64(time.Hour)})
	must(t, err)
	second := spec("second")
	second.After = []string{"first"}
	result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: second})
	must(t, err)
	if result.Run.State != agent.StateQueued || result.Reason != "it comes after first, which is queued" {
		t.Errorf("%+v", result)
	}
	if names := r.names(); len(names) != 0 {
		t.Errorf("started: %v", names)
	}
	// A restart of a waiting run starts it now; the run that comes after it follows.
	_, err = client.Do(within(t), c, methods.RunRestart, api.RestartParams{StopParams: api.StopParams{RunParams: api.RunParams{Run: "first"}}})
	must(t, err)
	_, _, err = r.d.cache.until(within(t), second.ID, func(run agent.Run, found bool) bool { return run.State == agent.StateRunning })
	must(t, err)
	if names := r.names(); !slices.Equal(names, []string{"first", "second"}) {
		t.Errorf("started: %v", names)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *Config) { c.MemoryShare = 0.01 })
	c := r.serve()
	for what, change := range map[string]func(*agent.Spec){
		"name":       func(s *agent.Spec) { s.Name = "../x" },
		"id":         func(s *agent.Spec) { s.ID = "x" },
		"command":    func(s *agent.Spec) { s.Command = nil },
		"no memory":  func(s *agent.Spec) { s.Limits.MemoryBytes = 0 },
		"all memory": func(s *agent.Spec) { s.Limits.MemoryBytes = 1 << 50 },
		"both":       func(s *agent.Spec) { s.Remove, s.Restart.Policy = true, agent.RestartAlways },
		"maximum":    func(s *agent.Spec) { s.Restart.Max = -1 },
		"target":     func(s *agent.Spec) { s.Egress.Rules = []agent.EgressRule{{Target: "http://x"}} },
		"pids":       func(s *agent.Spec) { s.Limits.Pids = -1 },
		"swap":       func(s *agent.Spec) { s.Limits.MemorySwapBytes = 0 },
	} {
		s := spec("a")
		change(&s)
		_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s})
		if err == nil {
			t.Errorf("%s: taken", what)
			continue
		}
		wantCode(t, err, api.CodeParams)
	}
	s := spec("a")
	s.Limits.MemoryBytes, s.Limits.MemorySwapBytes, s.After = agent.MemoryFloorBytes, agent.MemoryFloorBytes, []string{"no-such-run"}
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s})
	wantCode(t, err, api.CodeNotFound)
}

// The policy starts a run again until it gives up; wait returns the last end.
func TestRestartsAndGivesUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	s := spec("flaky")
	s.Restart = agent.Restart{Policy: agent.RestartOnFailure, Max: 1}
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s})
	must(t, err)
	waited := make(chan error, 1)
	go func() {
		result, err := client.Do(context.Background(), c, methods.RunWait, api.RunParams{Run: "flaky"})
		if err == nil && result.Record.ExitCode != 4 {
			t.Errorf("waited for %+v", result.Record)
		}
		waited <- err
	}()
	r.end("flaky", 3)
	run, _, err := r.d.cache.until(within(t), s.ID, func(run agent.Run, _ bool) bool {
		return run.State == agent.StateRunning && run.Queue.Restarts == 1
	})
	must(t, err)
	if run.Previous == nil || run.Previous.ExitCode != 3 || run.Queue.Starts != 2 {
		t.Errorf("%+v", run)
	}
	r.end("flaky", 4)
	must(t, <-waited)
	_, _, err = r.d.cache.until(within(t), s.ID, func(run agent.Run, _ bool) bool { return run.Queue.GivenUp })
	must(t, err)
}

// After a stop the policy starts nothing, also if cloved died right after it.
func TestStopLaysThePolicyToRest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	s := spec("always")
	s.Restart.Policy = agent.RestartAlways
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: s, DelayNS: int64(time.Hour)})
	must(t, err)
	must(t, client.Perform(within(t), c, methods.RunStop, api.StopParams{RunParams: api.RunParams{Run: "always"}}))
	result, err := client.Do(within(t), c, methods.RunWait, api.RunParams{Run: "always"})
	must(t, err)
	if result.Record.Status != agent.StatusKilled {
		t.Errorf("%+v", result.Record)
	}
	run, err := client.Do(within(t), c, methods.RunGet, api.RunParams{Run: "always"})
	must(t, err)
	if run.Run.State != agent.StateEnded || !run.Run.Queue.StopAsked {
		t.Errorf("%+v", run)
	}
}

// A new cloved continues where the last one stopped: queued runs start, and a run that ended
// meanwhile is started again by its policy.
func TestTheNextClovedGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	waiting := spec("waiting")
	_, err := r.records.enqueue(agent.Run{Spec: waiting})
	must(t, err)
	ended := r.add("ended", agent.Owner{}, agent.StateRunning)
	must(t, r.records.with(changeSpec(ended.Spec.ID, func(s *agent.Spec) { s.Restart.Policy = agent.RestartAlways })))
	r.end("ended", 0)
	r.serve()
	for _, id := range []agent.ID{waiting.ID, ended.Spec.ID} {
		_, _, err := r.d.cache.until(within(t), id, func(run agent.Run, _ bool) bool { return run.State == agent.StateRunning })
		must(t, err)
	}
}

func TestDrainHoldsStarts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	must(t, client.Perform(within(t), c, methods.Drain, api.DrainParams{On: true}))
	result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("late")})
	must(t, err)
	if result.Run.State != agent.StateQueued || result.Reason == "" {
		t.Errorf("%+v", result)
	}
	must(t, client.Perform(within(t), c, methods.Drain, api.DrainParams{}))
	_, _, err = r.d.cache.until(within(t), result.Run.Spec.ID, func(run agent.Run, _ bool) bool { return run.State == agent.StateRunning })
	must(t, err)
}

func TestRemoveRenamePrune(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("live", agent.Owner{}, agent.StateRunning)
	r.add("over", agent.Owner{}, agent.StateEnded)
	r.add("over-too", agent.Owner{}, agent.StateEnded)
	r.add("queued", agent.Owner{}, agent.StateQueued)
	c := r.serve()
	_, err := client.Do(within(t), c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: "over"}, Name: "done"})
	must(t, err)
	_, err = client.Do(within(t), c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: "live"}, Name: "dead"})
	wantCode(t, err, api.CodeConflict)
	_, err = client.Do(within(t), c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: "done"}, Name: "live"})
	wantCode(t, err, api.CodeConflict)
	wantCode(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "live"}}), api.CodeConflict)
	must(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "done"}}))
	must(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "queued"}}))
	r.add("queued-too", agent.Owner{}, agent.StateQueued)
	must(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "queued-too"}, Force: true}))
	wantCode(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "done"}}), api.CodeNotFound)
	pruned, err := client.Do(within(t), c, methods.RunPrune, api.Nothing{})
	must(t, err)
	listed, err := client.Collect(client.All(within(t), c, methods.RunList, api.ListParams{All: true}))
	must(t, err)
	if len(pruned.Removed) != 1 || len(listed) != 1 || listed[0].Run.Spec.Name != "live" {
		t.Errorf("%v, %+v", pruned, listed)
	}
}

// The numbering of events continues over restarts of cloved. A caller that names the last
// event it got misses none.
func TestEventsGoOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("a", ownerCaller.owner, agent.StateEnded)
	c := r.serve()
	read := func(after uint64) (whats []agent.RunEventKind, last uint64) {
		result, err := client.Each(within(t), c, methods.EventFollow, api.EventParams{After: &after}, func(note api.EventNote) error {
			if note.Gap || note.Event.Sequence <= after {
				t.Errorf("%+v after %d", note, after)
			}
			whats = append(whats, note.Event.Kind)
			return nil
		})
		must(t, err)
		return whats, result.Last
	}
	whats, last := read(0)
	if !slices.Equal(whats, []agent.RunEventKind{agent.RunQueued, agent.RunStarting, agent.RunStarted, agent.RunEnded}) {
		t.Errorf("%v", whats)
	}
	r.d = New(r.d.options) // the next cloved
	r.d.reconciler.starter = r
	r.add("b", agent.Owner{}, agent.StateRunning)
	if whats, _ := read(last); !slices.Equal(whats, []agent.RunEventKind{agent.RunQueued, agent.RunStarting, agent.RunStarted}) {
		t.Errorf("%v", whats)
	}
}

func TestEventsAreFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	ctx, enough := context.WithCancel(within(t))
	seen := make(chan agent.RunEventKind, 16)
	done := make(chan error, 1)
	go func() {
		_, err := client.Each(ctx, c, methods.EventFollow, api.EventParams{After: new(uint64), Follow: true}, func(note api.EventNote) error { seen <- note.Event.Kind; return nil })
		done <- err
	}()
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("one")})
	must(t, err)
	for _, want := range []agent.RunEventKind{agent.RunQueued, agent.RunStarting, agent.RunStarted} {
		if got := <-seen; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	enough()
	if err := <-done; err != context.Canceled {
		t.Errorf("%v", err)
	}
}

// A run in the foreground is restarted by cloved once it has ended; before, cloved answers at
// once that it cannot reach it.
func TestForegroundRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, name := range []string{"live", "over"} {
		state := agent.StateRunning
		if name == "over" {
			state = agent.StateEnded
		}
		run := r.add(name, agent.Owner{}, state)
		must(t, r.records.with(changeSpec(run.Spec.ID, func(s *agent.Spec) { s.Detached = false })))
	}
	c := r.serve()
	wantCode(t, client.Perform(within(t), c, methods.RunStop, api.StopParams{RunParams: api.RunParams{Run: "live"}}), api.CodeConflict)
	wantCode(t, client.Perform(within(t), c, methods.RunSignal, api.SignalParams{RunParams: api.RunParams{Run: "live"}, Signal: 9}), api.CodeConflict)
	wantCode(t, client.Perform(within(t), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "live"}, Force: true}), api.CodeConflict)
	_, err := client.Do(within(t), c, methods.RunStats, api.RunParams{Run: "live"})
	wantCode(t, err, api.CodeConflict)
	for _, name := range []string{"live", "over"} {
		wantCode(t, c.Logs(within(t), api.LogsParams{RunParams: api.RunParams{Run: name}}, func([]api.LogLine) error { return nil }), api.CodeConflict)
	}
	found, err := client.Do(within(t), c, methods.RunGet, api.RunParams{Run: "live"})
	must(t, err)
	if found.Run.Queue.StopAsked {
		t.Error("a stop is noted that could not be made")
	}
	_, err = client.Do(within(t), c, methods.RunRestart, api.RestartParams{StopParams: api.StopParams{RunParams: api.RunParams{Run: "over"}}})
	must(t, err)
	found, err = client.Do(within(t), c, methods.RunGet, api.RunParams{Run: "over"})
	must(t, err)
	if !found.Run.Spec.Detached || found.Run.State != agent.StateRunning {
		t.Errorf("%+v", found.Run)
	}
}

// Events of a run are found by a prefix of its id and under each name that it had. A number
// from another store is not accepted as a position.
func TestEventsOfOneRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("old", agent.Owner{}, agent.StateEnded)
	r.add("other", agent.Owner{}, agent.StateQueued)
	c := r.serve()
	_, err := client.Do(within(t), c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: "old"}, Name: "new"})
	must(t, err)
	for _, ref := range []string{string(run.Spec.ID), string(run.Spec.ID[:8]), "new"} {
		seen := 0
		_, err := client.Each(within(t), c, methods.EventFollow, api.EventParams{After: new(uint64), Run: ref}, func(note api.EventNote) error {
			if note.Event.ID != run.Spec.ID {
				t.Errorf("%s: %+v", ref, note.Event)
			}
			seen++
			return nil
		})
		if err != nil || seen != 5 {
			t.Errorf("%s: %d events, %v", ref, seen, err)
		}
	}
	beyond, gap := uint64(1e6), false
	_, err = client.Each(within(t), c, methods.EventFollow, api.EventParams{After: &beyond}, func(note api.EventNote) error { gap = gap || note.Gap; return nil })
	if err != nil || !gap {
		t.Errorf("%v, gap %v", err, gap)
	}
}

// A foreground run that would have to wait is refused and leaves nothing. A run that is
// started again later is not in the foreground.
func TestForegroundDoesNotWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	must(t, client.Perform(within(t), c, methods.Drain, api.DrainParams{On: true}))
	front := spec("front")
	front.Foreground = true
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: front})
	wantCode(t, err, api.CodeBusy)
	_, err = client.Do(within(t), c, methods.RunGet, api.RunParams{Run: "front"})
	wantCode(t, err, api.CodeNotFound)
	_, err = client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: front, DelayNS: int64(time.Hour)})
	wantCode(t, err, api.CodeParams)
	must(t, client.Perform(within(t), c, methods.Drain, api.DrainParams{}))
	result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: front})
	must(t, err)
	if result.Run.State != agent.StateRunning || !result.Run.Spec.Foreground {
		t.Errorf("%+v", result)
	}
	r.end("front", 0)
	result, err = client.Do(within(t), c, methods.RunRestart, api.RestartParams{StopParams: api.StopParams{RunParams: api.RunParams{Run: "front"}}})
	must(t, err)
	if result.Run.Spec.Foreground || !result.Run.Spec.Detached {
		t.Errorf("%+v", result)
	}
}
