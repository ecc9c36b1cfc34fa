package broker

import (
	"context"

	"clove.run/clove/egress"
)

// Drain waits until no connection of the agent's is open or being made: a
// program that wrote its last bytes and ended has them delivered, as the kernel
// would have done for it. A peer that never closes must not hold the run, so
// ctx bounds the wait. Flows of datagrams have no end to wait for.
func (b *Broker) Drain(ctx context.Context) {
	select {
	case <-b.connections.quiet():
	case <-ctx.Done():
	}
}

// quiet is closed once nothing that can be waited for is open.
func (all *connections) quiet() <-chan struct{} {
	all.mu.Lock()
	defer all.mu.Unlock()
	done := make(chan struct{})
	all.waiting = append(all.waiting, done)
	all.tellQuiet()
	return done
}

// tellQuiet wakes those who wait, if it is so. The caller holds the lock.
func (all *connections) tellQuiet() {
	if len(all.waiting) == 0 || all.dialling > 0 {
		return
	}
	for _, c := range all.open {
		if c.fd >= 0 && c.asked.Proto != egress.UDP {
			return
		}
	}
	for _, done := range all.waiting {
		close(done)
	}
	all.waiting = nil
}
