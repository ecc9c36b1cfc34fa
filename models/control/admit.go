package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"clove.run/clove/models/link"
	"clove.run/clove/models/queue"
)

// maxWait bounds the time that a call waits for its turn.
const maxWait = 10 * time.Minute

var errWaited = errors.New("the call has waited for its turn for too long")

// places are what a call has at turnstiles, in their order.
type places struct {
	mu     sync.Mutex // guards the following
	leaves []func()
	ended  bool
}

// take notes how to leave a turnstile. It reports false behind end.
func (p *places) take(leave func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.leaves = append(p.leaves, leave)
	}
	return !p.ended
}

// keep gives all places back but the first n, and returns how many are left. The earlier
// turnstile goes first: whom it lets through waits at the next when that is left, so that each
// of them serves the call whose turn it is.
func (p *places) keep(n int) int {
	p.mu.Lock()
	n = min(n, len(p.leaves))
	leaves := p.leaves[n:]
	p.leaves = p.leaves[:n:n]
	p.mu.Unlock()
	for _, leave := range leaves {
		leave()
	}
	return n
}

// end gives all places back, and those that are still to come.
func (p *places) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.keep(0)
}

// admit waits until there is room for a call to a target. The model, the target and the provider
// may limit calls; the provider's queue is the last, so that no call that waits for another
// limit takes a place there. A call that goes on with another target keeps its model's place.
// The error is a *crowdedError.
func (c *Control) admit(k *call) error {
	gates := []*turnstile{
		c.gates.of(ofModel, k.target.Name).with(k.target.Limits),
		c.gates.of(ofTarget, routeName(k.target)),
		c.gates.of(ofProvider, k.target.Provider.Name).with(k.target.Provider.Limits),
	}
	ctx, cancel := context.WithTimeoutCause(k.ctx, c.maxWait, errWaited)
	defer cancel()
	passed := make(chan error, 1)
	k.pass(gates[k.places.keep(1):], time.Now(), passed)
	if err := awaited(ctx, passed); err != nil {
		return &crowdedError{err}
	}
	return nil
}

// awaited waits for a value, until ctx ends. One that is there is taken.
func awaited(ctx context.Context, passed <-chan error) error {
	select {
	case err := <-passed:
		return err
	default:
	}
	select {
	case err := <-passed:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pass takes a call through turnstiles, without a step of its own goroutine in between: behind
// one it waits at the next before another call can pass there. passed gets one value at most.
func (k *call) pass(gates []*turnstile, since time.Time, passed chan<- error) {
	if len(gates) == 0 {
		passed <- nil
		return
	}
	w := waiter{run: k.served.run.Spec.ID, model: k.target.Name, tokens: k.begin.In + max(k.begin.Out, 1)*k.begin.N, since: since, taken: k.places.take}
	w.passes = func() { k.pass(gates[1:], since, passed) }
	if err := gates[0].enter(w); err != nil {
		passed <- err
	}
}

// learned notes the limits that a provider named in an answer. They bound the target alone, as
// providers limit each model, and only what is not configured.
func (c *Control) learned(k *call, l link.Limits) {
	p, m := k.target.Provider.Limits, k.target.Limits
	if p.RequestsPerMinute > 0 || m.RequestsPerMinute > 0 {
		l.Requests = 0
	}
	if p.TokensPerMinute > 0 || m.TokensPerMinute > 0 {
		l.Tokens = 0
	}
	if l != (link.Limits{}) {
		c.gates.of(ofTarget, routeName(k.target)).learn(queue.Limits{RequestsPerMinute: l.Requests, TokensPerMinute: l.Tokens})
	}
}
