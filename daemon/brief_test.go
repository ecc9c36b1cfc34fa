package daemon

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// TestBriefIsPartOfARun: each field of a brief run has the name and the meaning of the same
// field of a run. It leaves out what a table does not show.
func TestBriefIsPartOfARun(t *testing.T) {
	t.Parallel()
	signal := "SIGKILL"
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := agent.Run{Spec: agent.Spec{ID: "1234567890abcdef", Name: "a", Labels: map[string]string{"k": "v"}, Command: []string{"x", "<&>"}, Detached: true,
		Schedule: "@daily", Limits: agent.Limits{MemoryBytes: 5}}, State: agent.StateEnded, Owner: agent.Owner{UID: 7, GID: 8}, Queue: agent.QueueState{Starts: 2, Paused: true},
		Created: at, Started: at, PID: 9, Layer: "/l", Parent: "fedcba0987654321", Record: &agent.Record{Version: 1, ID: "1234567890abcdef", Name: "a", Started: at, Ended: at, WallMS: 3,
			Status: agent.StatusKilled, ExitCode: 137, Signal: &signal, Error: &agent.Failure{Step: agent.StepSupervise}}}
	whole := want
	record := *want.Record
	whole.Record, whole.Previous, whole.Lease = &record, &record, &agent.Lease{}
	whole.Spec.Env, whole.Record.Command, whole.Record.Host = []string{"SECRET=1"}, []string{"y"}, agent.Host{Kernel: "z"}
	text, err := briefText(whole)
	must(t, err)
	var got agent.Run
	must(t, json.Unmarshal(text, &got))
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

// TestBriefListFollowsTheRuns: the cached text of a run is current.
func TestBriefListFollowsTheRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("one", agent.Owner{UID: 5}, agent.StateQueued)
	ended := r.add("two", agent.Owner{}, agent.StateEnded)
	seen := func(peer caller) map[agent.ID]agent.Run {
		t.Helper()
		answer := r.listed(r.as(peer), api.ListParams{All: true, Brief: true})
		all := map[agent.ID]agent.Run{}
		for _, run := range answer.Runs {
			all[run.Spec.ID] = run
		}
		return all
	}
	root, other := caller{}, caller{principal: principal{owner: agent.Owner{UID: 6}}}
	for range 2 {
		if all := seen(root); len(all) != 2 || all[run.Spec.ID].State != agent.StateQueued || all[ended.Spec.ID].Record == nil {
			t.Fatalf("%+v", all)
		}
	}
	_, err := r.records.rename(run.Spec.ID, "other")
	must(t, err)
	must(t, r.records.with(func(s *store.Store) error { return s.Remove(ended.Spec.ID) }))
	if all := seen(root); len(all) != 1 || all[run.Spec.ID].Spec.Name != "other" {
		t.Errorf("after the change: %+v", all)
	}
	if len(r.d.cache.briefs) != 1 {
		t.Errorf("%d texts are kept of 1 run", len(r.d.cache.briefs))
	}
	if all := seen(other); len(all) != 0 {
		t.Errorf("another user sees %+v", all)
	}
}
