package service

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/store"
)

// rows are the notes of the rig's run.
func (r *rig) rows() (all []*note) {
	r.t.Helper()
	must(r.t, r.Read(func(tx *store.KernelTx) (err error) {
		all, err = notes.Below(tx, string(r.run.Spec.ID)+"/")
		return err
	}))
	return all
}

// parked waits until so many calls wait.
func (r *rig) parked(want int) {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		has := 0
		r.topics.mu.Lock()
		for _, of := range r.topics.by {
			for w := range of {
				if w.state == parked {
					has++
				}
			}
		}
		r.topics.mu.Unlock()
		if has == want {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d calls wait, want %d", has, want)
		}
	}
}

// A waiting call is answered by the commit that touches its topic. Calls for other topics wait on,
// and one for what is there already does not wait.
func TestACallWaitsForItsTopic(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	answers := make(chan string, 2)
	wait := func(name string) {
		text, err := r.asAgent(context.Background(), waitRow.Name, nameParams{name})
		answers <- fmt.Sprint(string(text), err)
	}
	go wait("a")
	go wait("b")
	r.parked(2)
	_, err := r.asAgent(context.Background(), putRow.Name, putParams{Name: "a", Text: "first"})
	must(t, err)
	if got, want := <-answers, fmt.Sprintf(`{"run":"%s","name":"a","text":"first"}<nil>`, r.run.Spec.ID); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r.parked(1)
	wait("a")
	if len(answers) != 1 {
		t.Error("it waits for what is there")
	}
	<-answers
	r.close()
	if got := <-answers; got != closing().Error() {
		t.Errorf("at the end: %s", got)
	}
}

// The end of its context ends a call that waits, at once, and nothing of it is left.
func TestAContextEndsAWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { _, err := r.asAgent(ctx, waitRow.Name, nameParams{"a"}); ended <- err }()
	r.parked(1)
	cancel()
	wantCode(t, <-ended, api.CodeCancelled, "")
	r.topics.mu.Lock()
	defer r.topics.mu.Unlock()
	if len(r.topics.by) != 0 {
		t.Errorf("%d topics are left", len(r.topics.by))
	}
}

// A context may end while its call looks again.
func TestAContextEndsDuringALook(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { _, err := r.asAgent(ctx, waitRow.Name, nameParams{"a"}); ended <- err }()
		r.parked(1)
		r.topics.mu.Lock()
		var topic Topic
		for topic = range r.topics.by {
		}
		r.topics.mu.Unlock()
		r.topics.touch(topic)
		cancel()
		wantCode(t, <-ended, api.CodeCancelled, "")
	}
}

// A call that its caller cancels is no refusal: it is in no record, and counts as none.
func TestACancelledWaitIsNoRefusal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { _, err := r.asAgent(ctx, waitRow.Name, nameParams{"a"}); ended <- err }()
	r.parked(1)
	cancel()
	<-ended
	if n := r.Refused(r.run.Spec.ID); n != 0 {
		t.Errorf("%d refusals", n)
	}
	if all := r.entries(); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// A mistake of a method is its caller's alone: turns go on to the next callers, and where the call
// had waited, it is answered. Nothing of it waits on.
func TestAPanicLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, method := range []string{getRow.Name, waitRow.Name, getRow.Name, waitRow.Name, getRow.Name} {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is not the caller's")
				}
			}()
			_, _ = r.asAgent(context.Background(), method, nameParams{"broken"})
		}()
	}
	w := &waiter{engine: r.Engine, call: r.newCall(context.Background(), Caller{Run: r.run, Agent: true}, Request{Method: "note.late"})}
	answered := make(chan error, 1)
	w.reply, w.topic, w.state = func(_ json.RawMessage, err error) { answered <- err }, "late", parked
	w.try = func() (json.RawMessage, error) { panic("a mistake of the method") }
	r.topics.enter(w)
	r.topics.touch("late")
	wantCode(t, api.ErrorOf(<-answered), api.CodeInternal, "")
	_, err := r.asAgent(context.Background(), putRow.Name, putParams{Name: "a"})
	must(t, err)
	r.topics.mu.Lock()
	defer r.topics.mu.Unlock()
	if len(r.topics.by) != 0 || r.turns.free != runtime.GOMAXPROCS(0) {
		t.Errorf("%d topics are left, %d turns are free", len(r.topics.by), r.turns.free)
	}
}

// No change between the look of a call and its wait is missed: each of many calls that begin
// while their notes are put is answered.
func TestNoChangeIsMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const calls = 200
	var all sync.WaitGroup
	for i := range calls {
		name := fmt.Sprint(i)
		all.Go(func() {
			if _, err := r.asAgent(context.Background(), waitRow.Name, nameParams{name}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			if _, err := r.asAgent(context.Background(), putRow.Name, putParams{Name: name}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// waiting is how many calls TestManyCallsWait lets wait, and waitingBytes what each may cost.
const (
	waitingCalls = 10_000
	waitingBytes = 4 << 10
)

// Calls that wait have no goroutine, cost at most 4 KiB each, and are all answered by one commit.
func TestManyCallsWait(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var answered atomic.Int64
	done := make(chan struct{})
	goroutines, before := runtime.NumGoroutine(), heap()
	for range waitingCalls {
		r.Begin(ctx, Caller{Run: r.run, Agent: true, UID: 1000}, Request{Method: waitRow.Name, Text: []byte(`{"name":"a"}`)}, func(_ json.RawMessage, err error) {
			if err != nil {
				t.Error(err)
			}
			if answered.Add(1) == waitingCalls {
				close(done)
			}
		})
	}
	r.parked(waitingCalls)
	if more := runtime.NumGoroutine() - goroutines; more > 10 {
		t.Errorf("%d goroutines more", more)
	}
	each := (int64(heap()) - int64(before)) / waitingCalls
	t.Logf("a call that waits costs %d bytes", each)
	if each > waitingBytes {
		t.Errorf("a call that waits costs %d bytes", each)
	}
	_, err := r.asAgent(context.Background(), putRow.Name, putParams{Name: "a"})
	must(t, err)
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%d of %d are answered", answered.Load(), waitingCalls)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
