package service

import (
	"context"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/audit"
)

var prepareRow = api.Row[putParams, note]{Name: "note.prepare", Access: api.AccessAgent}

// preparing is a method that is told when its work may end.
type preparing struct {
	begun, goOn chan struct{}
	dropped     []string
	worked      int
}

func (p *preparing) method() Method {
	return Prepared(prepareRow, Stages[putParams]{}, func(c *Call, params putParams) (note, error) {
		if c.Tx != nil {
			panic("a transaction is held")
		}
		p.worked++
		p.begun <- struct{}{}
		select {
		case <-p.goOn:
			return note{c.Run.Spec.ID, params.Name, "prepared"}, nil
		case <-c.Context.Done():
			return note{}, c.Context.Err()
		}
	}, func(c *Call, _ putParams, n note) (note, Outcome, error) {
		if n.Name == "refused" {
			return n, Outcome{}, api.Failure(api.CodeConflict, "", "not now")
		}
		return n, Outcome{About: n.Name}, notes.Put(c.Tx, &n)
	}, func(n note) { p.dropped = append(p.dropped, n.Name) })
}

func newPreparing(t *testing.T) (*rig, *preparing) {
	t.Helper()
	p := &preparing{begun: make(chan struct{}, 10), goOn: make(chan struct{})}
	r := newRig(t)
	r.more = p.method()
	r.close()
	r.open()
	r.attach(r.run)
	return r, p
}

// Work before a transaction holds none: others write meanwhile. It is done once for a key, whose
// answer a repetition gets, and recorded.
func TestWorkBeforeATransaction(t *testing.T) {
	t.Parallel()
	r, p := newPreparing(t)
	params := putParams{Name: "a", Key: "one"}
	first := make(chan string, 1)
	go func() {
		result, err := r.asAgent(context.Background(), prepareRow.Name, params)
		if err != nil {
			t.Error(err)
		}
		first <- string(result)
	}()
	<-p.begun
	if _, err := r.asAgent(context.Background(), putRow.Name, putParams{Name: "meanwhile"}); err != nil {
		t.Errorf("a call beside it: %v", err)
	}
	_, err := r.asAgent(context.Background(), prepareRow.Name, params)
	wantCode(t, err, api.CodeBusy, "")
	close(p.goOn)
	answer := <-first
	second, err := r.asAgent(context.Background(), prepareRow.Name, params)
	if err != nil || string(second) != answer || p.worked != 1 {
		t.Errorf("%s and again %s, %v, worked %d times", answer, second, err, p.worked)
	}
	_, err = r.asAgent(context.Background(), prepareRow.Name, putParams{Name: "b", Key: "one"})
	wantCode(t, err, api.CodeConflict, "")
	allowed := 0
	for _, e := range r.entries() {
		if e.Method == prepareRow.Name && e.Verdict == audit.VerdictAllow {
			allowed++
		}
	}
	if allowed != 1 || len(p.dropped) != 0 {
		t.Errorf("%d entries, dropped %q", allowed, p.dropped)
	}
}

// What was prepared for a call that is refused is taken back, and a caller that leaves ends the work.
func TestWorkIsTakenBack(t *testing.T) {
	t.Parallel()
	r, p := newPreparing(t)
	ctx, leave := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { _, err := r.asAgent(ctx, prepareRow.Name, putParams{Name: "a", Key: "one"}); ended <- err }()
	<-p.begun
	leave()
	if err := <-ended; err == nil {
		t.Error("a caller that left got an answer")
	}
	close(p.goOn)
	_, err := r.asAgent(context.Background(), prepareRow.Name, putParams{Name: "refused", Key: "one"})
	wantCode(t, err, api.CodeConflict, "")
	if len(p.dropped) != 1 || p.dropped[0] != "refused" {
		t.Errorf("dropped %q", p.dropped)
	}
	// Neither has taken the key.
	if _, err := r.asAgent(context.Background(), prepareRow.Name, putParams{Name: "a", Key: "one"}); err != nil || p.worked != 3 {
		t.Errorf("%v, worked %d times", err, p.worked)
	}
	refused := 0
	for _, e := range r.entries() {
		if e.Method == prepareRow.Name && e.Verdict != audit.VerdictAllow {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d refusals are recorded", refused)
	}
}
