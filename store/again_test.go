package store

import (
	"testing"
	"time"

	"clove.run/clove/agent"
)

// A run that is queued again keeps its layer; if it must have a new one, until it begins.
func TestLayerOfTheNextStart(t *testing.T) {
	t.Parallel()
	for _, fresh := range []bool{false, true} {
		s := openNew(t)
		run, err := s.Begin(newRun("again"))
		must(t, err)
		_, err = s.Finish(run.Spec.ID, agent.EventRecorded, recordOf(run.Spec), func(r *agent.Run) { r.Layer = "/layer" })
		must(t, err)
		queued, err := s.Requeue(run.Spec.ID, func(r *agent.Run) { r.Queue.Fresh = fresh })
		must(t, err)
		if queued.Layer != "/layer" || queued.Previous == nil || queued.Record != nil {
			t.Errorf("fresh %v: queued as %+v", fresh, queued)
		}
		begun, err := s.Begin(agent.Run{Spec: run.Spec, Lease: &agent.Lease{}})
		must(t, err)
		if want := map[bool]string{false: "/layer", true: ""}[fresh]; begun.Layer != want || begun.Queue.Fresh {
			t.Errorf("fresh %v: begun as %+v", fresh, begun)
		}
		wantStored(t, s, begun)
	}
}

// A record says who requested the end, whichever process writes it.
func TestRecordsSayWhoStopped(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	run, err := s.Begin(newRun("asked"))
	must(t, err)
	by := &agent.Stopped{By: "uid 7, process 8", Time: time.Now().UTC()}
	_, err = s.Amend(run.Spec.ID, agent.RunStopRequested, by.By, func(r *agent.Run) { r.Queue.StopAsked, r.Queue.Stopped = true, by })
	must(t, err)
	ended, err := s.Finish(run.Spec.ID, agent.EventRecorded, recordOf(run.Spec), nil)
	must(t, err)
	if ended.Record.Stopped == nil || *ended.Record.Stopped != *by {
		t.Errorf("%+v", ended.Record)
	}
	other, err := s.Begin(newRun("unasked"))
	must(t, err)
	if ended, err = endRun(s, other.Spec); err != nil || ended.Record.Stopped != nil {
		t.Errorf("%v, %+v", err, ended.Record)
	}
}

func TestDrainIsKept(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	for _, on := range []bool{true, true, false, false} {
		s := open(t, path)
		must(t, s.SetDrained(on))
		must(t, s.Close())
		s = open(t, path)
		drained, err := s.Drained()
		must(t, err)
		if drained != on {
			t.Errorf("drained %v after %v", drained, on)
		}
		must(t, s.Close())
	}
	checkClean(t, path)
}

// If a run was removed while its supervisor was starting, it is not stored again.
func TestARemovedRunDoesNotBegin(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	asked := newRun("gone")
	asked.Spec.Detached = true
	_, err := s.Begin(asked)
	wantKind(t, err, agent.KindConflict)
	if runs, err := s.List(); err != nil || len(runs) != 0 {
		t.Errorf("%v, %+v", err, runs)
	}
}
