package service

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"clove.run/clove/store"
)

// queued waits until so many calls wait for their turn.
func (t *turns) queued(want int) {
	for has := -1; has != want; runtime.Gosched() {
		t.mu.Lock()
		has = 0
		for _, all := range t.waiting {
			has += len(all)
		}
		t.mu.Unlock()
	}
}

// A caller that comes behind a hundred calls of another one is next but one, and the others' calls
// keep their order.
func TestCallersTakeTurns(t *testing.T) {
	t.Parallel()
	q := &turns{free: 1, waiting: map[string][]chan struct{}{}}
	q.enter("flood")
	var mu sync.Mutex
	var order []string
	var all sync.WaitGroup
	begin := func(caller, name string, queued int) {
		all.Go(func() {
			q.enter(caller)
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			q.leave()
		})
		q.queued(queued)
	}
	for i := range 100 {
		begin("flood", fmt.Sprint("flood ", i), i+1)
	}
	begin("victim", "victim 0", 101)
	begin("victim", "victim 1", 102)
	q.leave()
	all.Wait()
	if want := []string{"flood 0", "victim 0", "flood 1", "victim 1", "flood 2"}; !slices.Equal(order[:5], want) || order[101] != "flood 99" {
		t.Errorf("%q", order)
	}
	if q.free != 1 || len(q.order) != 0 || len(q.waiting) != 0 {
		t.Errorf("%+v", q)
	}
}

// Of one agent's changes a few are decided at once, and its others wait for these. The control is
// another agent, which need not wait, and a call that changes nothing.
func TestOneAgentsChangesWaitForEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := newRun()
	r.attach(other)
	begun, hold := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	var all sync.WaitGroup
	all.Go(func() {
		_ = r.file.Update(func(*store.KernelTx) error { close(begun); <-hold; return nil })
	})
	<-begun // no change can be committed any more
	put := func(c Caller, name string) {
		if _, err := r.Call(context.Background(), c, Request{Method: putRow.Name, Text: encode(putParams{Name: name})}); err != nil {
			t.Error(err)
		}
	}
	for i := range decidedAtOnce + 20 {
		all.Go(func() { put(Caller{Run: r.run, Agent: true, UID: 1000}, fmt.Sprint(i)) })
	}
	full := func(run *attachment, want int) {
		for deadline := time.Now().Add(patience); len(run.places) < want; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("%d changes are being decided", len(run.places))
			}
		}
	}
	full(r.attachmentOf(r.run.Spec.ID), decidedAtOnce)
	all.Go(func() { put(Caller{Run: other, Agent: true, UID: 1000}, "a") })
	full(r.attachmentOf(other.Spec.ID), 1)
	if _, err := r.asAgent(context.Background(), getRow.Name, nameParams{"a"}); !errors.Is(err, ErrNotYet) {
		t.Error(err)
	}
	release()
	all.Wait()
	if len(r.rows()) != decidedAtOnce+20 {
		t.Errorf("%d rows", len(r.rows()))
	}
}
