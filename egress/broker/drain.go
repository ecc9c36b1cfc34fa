package broker

import (
	"context"

	"clove.run/clove/egress"
)

// Drain waits until no connection of the agent is open or being made, so that the last
// bytes of a program that has ended are delivered, as the kernel does without a gate. ctx
// bounds the wait, because a peer that never closes must not delay the end of the run. UDP
// flows have no end to wait for.
func (b *Broker) Drain(ctx context.Context) {
	select {
	case <-b.connections.idle():
	case <-ctx.Done():
	}
}

// idle returns a channel that is closed when no TCP connection is open.
func (all *connections) idle() <-chan struct{} {
	all.mu.Lock()
	defer all.mu.Unlock()
	done := make(chan struct{})
	all.waiting = append(all.waiting, done)
	all.notifyIdle()
	return done
}

// notifyIdle closes the channels of idle if no TCP connection is open. It requires all.mu.
func (all *connections) notifyIdle() {
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
