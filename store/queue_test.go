package store

import (
	"testing"

	"clove.run/clove/agent"
)

func detached(name string) agent.Run {
	run := newRun(name)
	run.Spec.Detached = true
	return run
}

// A run that was ended or removed in the queue does not begin: it would be a new run without
// an owner, and the caller who removed it was answered that it is gone.
func TestWhatLeftTheQueueDoesNotBegin(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	for name, leave := range map[string]func(agent.Run) error{
		"ended": func(run agent.Run) error {
			_, err := s.Finish(run.Spec.ID, agent.EventRecorded, recordOf(run.Spec), nil)
			return err
		},
		"removed": func(run agent.Run) error {
			if _, err := s.Finish(run.Spec.ID, agent.EventRecorded, recordOf(run.Spec), nil); err != nil {
				return err
			}
			return s.Remove(run.Spec.ID)
		},
	} {
		run, err := s.Enqueue(detached(name))
		must(t, err)
		must(t, leave(run))
		if _, err := s.Begin(agent.Run{Spec: run.Spec, Lease: &agent.Lease{}}); agent.KindOf(err) != agent.KindConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	waiting, err := s.Enqueue(detached("waiting"))
	must(t, err)
	_, err = s.Begin(agent.Run{Spec: waiting.Spec, Lease: &agent.Lease{}})
	must(t, err)
}

// The supervisor of a live run could not store its end under another name.
func TestRenameRefusesTheLive(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	live, err := s.Begin(newRun("live"))
	must(t, err)
	if _, err := s.Rename(live.Spec.ID, "other"); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("%v", err)
	}
	_, err = s.Finish(live.Spec.ID, agent.EventRecorded, recordOf(live.Spec), nil)
	must(t, err)
	_, err = s.Rename(live.Spec.ID, "other")
	must(t, err)
}

// The event of an end names the call that asked for it or spent the budget, or the parent; of other ends it names
// neither, also where a call was noted.
func TestTheCauseOfAnEnd(t *testing.T) {
	t.Parallel()
	const call = "cccccccccccccccc"
	parent := agent.NewID()
	limit := &agent.LimitHit{Name: "tokens"}
	for name, c := range map[string]struct {
		record      agent.Record
		stop, quiet bool // a stop was asked for; no call was noted
		want        [2]string
	}{
		"killed":                   {record: agent.Record{Status: agent.StatusKilled}, want: [2]string{call, call}},
		"killed, no call":          {record: agent.Record{Status: agent.StatusKilled}, quiet: true},
		"a signal":                 {record: agent.Record{Status: agent.StatusSignaled}, want: [2]string{call, call}},
		"policy":                   {record: agent.Record{Status: agent.StatusPolicyKill}, want: [2]string{call, call}},
		"budget":                   {record: agent.Record{Status: agent.StatusBudget, Limit: limit}, want: [2]string{call, call}},
		"asked, and it exited":     {record: agent.Record{Status: agent.StatusExited}, stop: true, want: [2]string{call, call}},
		"it exited":                {record: agent.Record{Status: agent.StatusExited}},
		"asked, and it had no RAM": {record: agent.Record{Status: agent.StatusOOM, Limit: limit}, stop: true},
		"its deadline":             {record: agent.Record{Status: agent.StatusTimeout, Limit: limit, Error: &agent.Failure{Step: agent.StepDeadline}}, stop: true},
		"its parent ended":         {record: agent.Record{Status: agent.StatusKilled, Error: &agent.Failure{Step: agent.StepParent}}, want: [2]string{string(parent), ""}},
		"its start failed":         {record: agent.Record{Status: agent.StatusStartFailed, Error: &agent.Failure{Step: agent.StepParent}}},
	} {
		s := openNew(t)
		run := detached("child")
		run.Parent = parent
		run, err := s.Enqueue(run)
		must(t, err)
		if !c.quiet {
			must(t, s.Caused(call, agent.NewID(), run.Spec.ID))
		}
		if c.stop {
			_, err = s.Amend(run.Spec.ID, agent.RunStopRequested, "", func(run *agent.Run) { run.MarkForStop(agent.Stopped{}) })
			must(t, err)
		}
		record := recordOf(run.Spec)
		record.Status, record.Limit, record.Error = c.record.Status, c.record.Limit, c.record.Error
		_, err = s.Finish(run.Spec.ID, agent.EventRecorded, record, nil)
		must(t, err)
		must(t, s.Caused("dddddddddddddddd", run.Spec.ID)) // too late
		events, _, err := s.Events(0, 100)
		must(t, err)
		for _, e := range events {
			if e.Parent != parent {
				t.Errorf("%s: %s: the parent is %q", name, e.Kind, e.Parent)
			}
			want := [2]string{}
			switch e.Kind {
			case agent.RunQueued:
				want = [2]string{string(parent), ""}
			case agent.RunEnded:
				want = c.want
			case agent.RunStopRequested:
				want = [2]string{call, call}
			}
			if got := [2]string{e.Causation, e.Correlation}; got != want {
				t.Errorf("%s: %s: %q, want %q", name, e.Kind, got, want)
			}
		}
		again, err := s.Requeue(run.Spec.ID, func(run *agent.Run) { run.Restart(false, run.Created) })
		if err != nil || again.Queue.Cause != "" {
			t.Errorf("%s: the next life has the cause %q, %v", name, again.Queue.Cause, err)
		}
	}
}
