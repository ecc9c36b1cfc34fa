package daemon

import (
	"bytes"
	"context"
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
