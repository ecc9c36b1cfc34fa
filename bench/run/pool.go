package run

import (
	"context"
	"math"
	"slices"
	"sync"
)

// Room is what one attempt occupies while it runs.
type Room struct {
	CPUs   int
	Memory int64
}

// pool is what the machine has for attempts. Who waits longest is served first, so that a
// large attempt is not passed by small ones for ever.
type pool struct {
	mu     sync.Mutex // guards the following
	cpus   []int      // free processors, ascending
	memory int64
	places int // attempts that may begin now
	queue  []*waiter
}

type waiter struct {
	room  Room
	ready chan []int // the processors; buffered, so that a waiter that left blocks nobody
}

func newPool(cpus []int, memory int64, places int) *pool {
	return &pool{cpus: slices.Sorted(slices.Values(cpus)), memory: memory, places: places}
}

// take waits until there is room, and returns the processors that nobody else has until give.
func (p *pool) take(ctx context.Context, room Room) ([]int, error) {
	w := &waiter{room, make(chan []int, 1)}
	p.mu.Lock()
	p.queue = append(p.queue, w)
	p.serve()
	p.mu.Unlock()
	select {
	case cpus := <-w.ready:
		return cpus, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue, w); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		p.serve()
		return nil, ctx.Err()
	}
	p.free(<-w.ready, room.Memory)
	return nil, ctx.Err()
}

// give returns what take gave.
func (p *pool) give(cpus []int, room Room) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(cpus, room.Memory)
}

func (p *pool) free(cpus []int, memory int64) {
	p.cpus = slices.Sorted(slices.Values(append(p.cpus, cpus...)))
	p.memory += memory
	p.places++
	p.serve()
}

// serve lets the first of the queue go as long as there is room for it. p.mu is held.
func (p *pool) serve() {
	for len(p.queue) > 0 {
		w := p.queue[0]
		if p.places < 1 || w.room.CPUs > len(p.cpus) || w.room.Memory > p.memory {
			return
		}
		w.ready <- slices.Clone(p.cpus[:w.room.CPUs])
		p.cpus = slices.Delete(p.cpus, 0, w.room.CPUs)
		p.memory -= w.room.Memory
		p.places--
		p.queue = p.queue[1:]
	}
}

// wholeCPUs is how many processors a share of them is pinned to.
func wholeCPUs(share float64) int { return max(1, int(math.Ceil(share))) }
