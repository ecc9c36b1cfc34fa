package daemon

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
)

// The caller of a start gets an answer if another caller ends the run while it is queued.
func TestStartOfARunThatIsEndedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := &request{Context: within(t), peer: caller{}}
	s := spec("brief")
	_, decided := r.d.reconciler.reason(s.ID)
	_, err := r.records.enqueue(agent.Run{Spec: s, Queue: agent.QueueState{Since: time.Now()}})
	must(t, err)
	c.run.Spec = s
	must(t, r.d.runs().dequeue(c))
	_, err = r.d.reconciler.look(context.Background())
	must(t, err)
	_, err = r.d.runs().firstTurn(c, s, make(chan supervisor.Answer), decided)
	if agent.KindOf(err) != agent.KindConflict {
		t.Errorf("%v", err)
	}
}

// A run that was found queued may run a moment later: then it is not taken out of the queue,
// because that would free the lease of a live agent.
func TestDequeueLeavesTheLive(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("quick", agent.Owner{}, agent.StateRunning)
	run.State = agent.StateQueued // as it was found
	c := &request{Context: within(t), run: run}
	if err := r.d.runs().dequeue(c); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("%v", err)
	}
	must(t, r.d.cache.refresh())
	if now, _ := r.d.cache.get(run.Spec.ID); now.State != agent.StateRunning || now.Lease == nil {
		t.Errorf("%+v", now)
	}
}

// If a name has come to mean another run, nothing is done to that run.
func TestHoldTellsThatANameMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("old", agent.Owner{}, agent.StateEnded)
	c := &request{Context: within(t), run: run}
	release, err := r.d.runs().hold(c, "old")
	must(t, err)
	release()
	_, err = r.records.rename(run.Spec.ID, "new")
	must(t, err)
	_, err = r.d.runs().hold(c, "old")
	wantCode(t, err, api.CodeNotFound)
	r.add("old", agent.Owner{}, agent.StateEnded)
	_, err = r.d.runs().hold(c, "old")
	wantCode(t, err, api.CodeNotFound)
}

// If a supervisor dies during a session, its caller would get no answer. cloved notices that,
// however the bytes are divided.
func TestLinesNoticeTheAnswer(t *testing.T) {
	t.Parallel()
	note, answer := `{"jsonrpc":"2.0","method":"session.output","params":{"id":2}}`+"\n", `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n"
	for text, want := range map[string]bool{note: false, note + answer: true, answer: true, note + note: false, "": false} {
		for size := 1; size < 80; size += 13 {
			var got bytes.Buffer
			l := lines{to: &got}
			for rest := []byte(text); len(rest) > 0; {
				n, err := l.Write(rest[:min(size, len(rest))])
				must(t, err)
				rest = rest[n:]
			}
			if l.answered != want || got.String() != text {
				t.Errorf("%q in pieces of %d: %v, %q", text, size, l.answered, got.String())
			}
		}
	}
}

// A child whose deadline comes in the queue ends then, without a start, and its policy does not start it again. The
// control waits for the same, has no deadline, and starts.
func TestADeadlineInTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	deadline := time.Now().Add(300 * time.Millisecond)
	child := func(name string, deadline time.Time) agent.ID {
		run := agent.Run{Spec: spec(name), Parent: agent.NewID(), Deadline: deadline, Queue: agent.QueueState{Since: time.Now(), NotBefore: time.Now().Add(time.Second)}}
		run.Spec.Restart.Policy = agent.RestartAlways
		run, err := r.records.enqueue(run)
		must(t, err)
		return run.Spec.ID
	}
	late, control := child("late", deadline), child("control", time.Time{})
	r.serve()
	run := r.reaches(late, func(run agent.Run) bool { return run.State == agent.StateEnded })
	if record := run.Record; record.Status != agent.StatusTimeout || record.ExitCode != agent.ExitTimeout || record.Error == nil || record.Error.Step != agent.StepDeadline || record.Parent != run.Parent || record.Ended.Before(deadline) {
		t.Errorf("%+v, %+v", record, record.Error)
	}
	r.reaches(control, running)
	if whats := r.whats("late"); !slices.Equal(whats, []agent.RunEventKind{agent.RunEnded}) {
		t.Errorf("%v", whats)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.started, []string{"control"}) {
		t.Errorf("started %v", r.started)
	}
}
