package service

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// fullLog is a log on a disk that is full.
type fullLog struct {
	*audit.Log
	full atomic.Bool
}

func (l *fullLog) Room() error {
	if l.full.Load() {
		return fmt.Errorf("%w: %w", audit.ErrStorage, unix.ENOSPC)
	}
	return nil
}

// takeAll takes every turn, and returns how many there are.
func (t *turns) takeAll() int {
	n := runtime.GOMAXPROCS(0)
	for range n {
		t.enter("others")
	}
	return n
}

// A call that ends agents waits for nothing: 128 calls are in flight and no commit ends, the log has
// no space for decisions, and the call is done and recorded. The control is a change, which is refused.
func TestActsWaitForNothing(t *testing.T) {
	t.Parallel()
	log := &fullLog{}
	r := newRigWith(t, func(c *Config) { log.Log = c.Log.(*audit.Log); c.Log = log })
	begun, hold := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	var all sync.WaitGroup
	all.Go(func() { _ = r.file.Update(func(*store.KernelTx) error { close(begun); <-hold; return nil }) })
	<-begun
	for i := range 128 {
		all.Go(func() { _, _ = r.asAgent(context.Background(), putRow.Name, putParams{Name: fmt.Sprint(i)}) })
	}
	took := r.turns.takeAll()
	log.full.Store(true)
	r.full.Store(true)
	_, err := r.Call(context.Background(), Caller{}, Request{Method: actRow.Name, Text: []byte(`{"name":"stop"}`)})
	must(t, err)
	for range took {
		r.turns.leave()
	}
	found := 0
	must(t, audit.Query(filepath.Join(r.dir, "audit"), audit.Filter{}, func(e audit.Entry) error {
		if e.Method == actRow.Name && e.What == "stop" {
			found++
		}
		return nil
	}))
	if found != 1 {
		t.Errorf("%d entries", found)
	}
	_, err = r.Call(context.Background(), Caller{UID: 1000}, Request{Method: answerRow.Name})
	wantCode(t, err, api.CodeStorage, "")
	release()
	log.full.Store(false)
	all.Wait()
}
