package control

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Every pair of states is tried: those that follow each other pass, and all others change
// nothing.
func TestStatesOfACall(t *testing.T) {
	t.Parallel()
	names := []string{"deciding", "reserved", "flying", "failed", "refused", "settled"}
	follows := map[string][]string{
		"deciding": {"reserved", "refused"},
		"reserved": {"flying", "settled"},
		"flying":   {"failed", "settled"},
		"failed":   {"reserved", "settled"},
	}
	for from, name := range names {
		for to, next := range names {
			l := lifecycle{now: state(from)}
			want := slices.Contains(follows[name], next)
			if got := l.enter(state(to)); got != want {
				t.Errorf("%s to %s: %v", name, next, got)
			}
			if moved := l.now == state(to); moved != (want || from == to) {
				t.Errorf("%s to %s leads to %s", name, next, names[l.now])
			}
		}
	}
}

// Of those that end a call at the same time, one settles it.
func TestACallIsSettledOnce(t *testing.T) {
	t.Parallel()
	l := lifecycle{now: stateFlying}
	var all sync.WaitGroup
	var settled atomic.Int32
	for range 8 {
		all.Go(func() {
			if l.enter(stateSettled) {
				settled.Add(1)
			}
		})
	}
	all.Wait()
	if settled.Load() != 1 {
		t.Errorf("%d settle it", settled.Load())
	}
}
