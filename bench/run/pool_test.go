package run

import (
	"context"
	"errors"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// However attempts come and go, no processor has two, and memory is never promised twice.
func TestThePoolIsNeverOvercommitted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cpus, memory := rapid.IntRange(1, 6).Draw(t, "processors"), rapid.Int64Range(10, 100).Draw(t, "memory")
		all := make([]int, cpus)
		for i := range all {
			all[i] = i * 3
		}
		p := newPool(all, memory, rapid.IntRange(1, 8).Draw(t, "places"))
		rooms := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Room {
			return Room{rapid.IntRange(1, cpus).Draw(t, "processors"), rapid.Int64Range(1, memory).Draw(t, "memory")}
		}), 1, 30).Draw(t, "attempts")
		var mu sync.Mutex
		var left sync.WaitGroup
		held, used := map[int]bool{}, int64(0)
		var wrong error
		for _, room := range rooms {
			left.Go(func() {
				got, err := p.take(context.Background(), room)
				mu.Lock()
				used += room.Memory
				if err != nil || len(got) != room.CPUs || used > memory {
					wrong = errors.New("too much was given")
				}
				for _, cpu := range got {
					if held[cpu] {
						wrong = errors.New("a processor was given twice")
					}
					held[cpu] = true
				}
				mu.Unlock()
				mu.Lock()
				used -= room.Memory
				for _, cpu := range got {
					held[cpu] = false
				}
				mu.Unlock()
				p.give(got, room)
			})
		}
		left.Wait()
		if wrong != nil {
			t.Fatal(wrong)
		}
		if len(p.cpus) != cpus || p.memory != memory {
			t.Fatalf("%d processors and %d bytes are left of %d and %d", len(p.cpus), p.memory, cpus, memory)
		}
	})
}

// A waiter that gives up leaves its place to the next one.
func TestAWaiterThatLeavesBlocksNobody(t *testing.T) {
	t.Parallel()
	p := newPool([]int{0}, 10, 1)
	first, err := p.take(context.Background(), Room{1, 10})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.take(gone, Room{1, 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	p.give(first, Room{1, 10})
	if got, err := p.take(context.Background(), Room{1, 1}); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// Whatever of the three is used up, the next one waits, and goes on when it is given back. One
// behind it that would fit waits as well.
func TestWhatIsUsedUpIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		places      int
		held, large Room
	}{
		"processors": {9, Room{3, 1}, Room{2, 1}},
		"memory":     {9, Room{1, 6}, Room{1, 6}},
		"places":     {1, Room{1, 1}, Room{1, 1}},
	} {
		p := newPool([]int{0, 1, 2, 3}, 10, c.places)
		held, err := p.take(context.Background(), c.held)
		if err != nil {
			t.Fatal(err)
		}
		large, small := &waiter{c.large, make(chan []int, 1)}, &waiter{Room{1, 1}, make(chan []int, 1)}
		p.mu.Lock()
		p.queue = []*waiter{large, small}
		p.serve()
		p.mu.Unlock()
		if len(large.ready)+len(small.ready) != 0 {
			t.Errorf("%s: what is used up was given", name)
		}
		p.give(held, c.held)
		if len(large.ready) != 1 {
			t.Errorf("%s: what was given back is not used", name)
		}
	}
}
