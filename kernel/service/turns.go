package service

import (
	"runtime"
	"sync"
)

// turns is a fair queue over callers: at most so many calls are worked on at once as there are
// processors, and the callers take turns. A caller with a hundred calls in flight so delays another
// one's by one call's work, and not by a hundred. A call leaves before it waits for the disk.
type turns struct {
	mu      sync.Mutex // guards the following
	free    int
	waiting map[string][]chan struct{} // by caller, in the order of their calls
	order   []string                   // callers with a call that waits; the first one is next
}

func newTurns() *turns {
	return &turns{free: runtime.GOMAXPROCS(0), waiting: map[string][]chan struct{}{}}
}

// enter waits for the caller's turn.
func (t *turns) enter(caller string) {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	if len(t.waiting[caller]) == 0 {
		t.order = append(t.order, caller)
	}
	t.waiting[caller] = append(t.waiting[caller], turn)
	t.mu.Unlock()
	<-turn
}

// leave gives the turn to the next caller.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.free++
		return
	}
	caller := t.order[0]
	t.order = t.order[1:]
	all := t.waiting[caller]
	close(all[0])
	if t.waiting[caller] = all[1:]; len(all) == 1 {
		delete(t.waiting, caller)
	} else {
		t.order = append(t.order, caller)
	}
}
