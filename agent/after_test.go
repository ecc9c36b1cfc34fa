package agent

import (
	"testing"
	"time"
)

// A condition is met by how far the run has come, and an end with a failure meets none.
func TestAfterMet(t *testing.T) {
	t.Parallel()
	good, bad, now := &Record{}, &Record{ExitCode: 1}, time.Now()
	for name, row := range map[string]struct {
		run                   Run
		started, ready, ended bool
	}{
		"queued":         {run: Run{State: StateQueued}},
		"running":        {run: Run{State: StateRunning}, started: true},
		"ready":          {run: Run{State: StateRunning, Queue: QueueState{Ready: now}}, started: true, ready: true},
		"not yet ready":  {run: Run{State: StateStarting, Queue: QueueState{Ready: now}}},
		"done":           {run: Run{State: StateEnded, Record: good}, started: true, ended: true},
		"done, ready":    {run: Run{State: StateEnded, Record: good, Queue: QueueState{Ready: now}}, started: true, ready: true, ended: true},
		"failed":         {run: Run{State: StateEnded, Record: bad}},
		"failed, ready":  {run: Run{State: StateEnded, Record: bad, Queue: QueueState{Ready: now}}},
		"restarts later": {run: Run{State: StateQueued, Previous: bad}},
	} {
		for condition, want := range map[string]bool{AfterStarted: row.started, AfterReady: row.ready, AfterEnded: row.ended, "other": false} {
			if got := (After{Condition: condition}).Met(&row.run); got != want {
				t.Errorf("%s, %s: %v", name, condition, got)
			}
		}
	}
}

// Being ready is of one start.
func TestReadyEndsWithTheStart(t *testing.T) {
	t.Parallel()
	run, first := Run{State: StateRunning}, time.Now()
	run.SetReady(first)
	run.SetReady(first.Add(time.Hour))
	if !run.Queue.Ready.Equal(first) {
		t.Errorf("%v", run.Queue.Ready)
	}
	run.State, run.Record = StateEnded, &Record{}
	run.Restart(false, first)
	if run.SetReady(first); !run.Queue.Ready.IsZero() {
		t.Errorf("%v", run.Queue.Ready)
	}
}

func TestSplitAfter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a": AfterStarted, "1000/a:ended": AfterEnded, "a:ready": AfterReady} {
		if _, condition, err := SplitAfter(text); condition != want || err != nil {
			t.Errorf("%q: %q, %v", text, condition, err)
		}
	}
	if _, _, err := SplitAfter("a:later"); KindOf(err) != KindInvalid || FailureOf(err).Hint == "" {
		t.Error(err)
	}
	run := Run{Owner: Owner{UID: 7}, Spec: Spec{After: []string{"a", "8/b:ended"}}}
	if all := run.Afters(); all[0] != (After{RunName{7, "a"}, AfterStarted}) || all[1] != (After{RunName{8, "b"}, AfterEnded}) {
		t.Errorf("%+v", all)
	}
}
