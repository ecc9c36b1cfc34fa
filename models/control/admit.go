package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
	"clove.run/clove/models/queue"
)

var errWaited = errors.New("the call has waited for its turn for too long")

// places are what a call has at limiters, in their order.
type places struct {
	mu     sync.Mutex // guards the following
	leaves []func()
	ended  bool
}

// take notes how to leave a limiter. It reports false behind end.
func (p *places) take(leave func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.leaves = append(p.leaves, leave)
	}
	return !p.ended
}

// keep gives all places back but the first n, and returns how many are left. The earlier
// limiter goes first: whom it lets through waits at the next when that is left, so that each
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

// applicant is a call that wants to pass.
type applicant struct {
	run    agent.ID
	target config.Target
	tokens int64
}

// admit waits until there is room for a call to a target. The model, the target and the provider
// may limit calls; the provider's queue is the last, so that no call that waits for another
// limit takes a place there. A call that goes on with another target keeps its model's place.
// The error is a *crowdedError.
func (ts *limiters) admit(ctx context.Context, p *places, a applicant) error {
	gates := []*limiter{
		ts.of(ofModel, a.target.Name).with(a.target.Limits),
		ts.of(ofTarget, routeName(a.target)),
		ts.of(ofProvider, a.target.Provider.Name).with(a.target.Provider.Limits),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, ts.maxWait, errWaited)
	defer cancel()
	passed := make(chan error, 1)
	pass(gates[p.keep(1):], waiter{run: a.run, model: a.target.Name, tokens: a.tokens, since: time.Now(), taken: p.take}, passed)
	if err := awaited(ctx, passed); err != nil {
		return &crowdedError{err}
	}
	return nil
}

// crowdedError is an error of admit.
type crowdedError struct{ error }

func (e *crowdedError) Unwrap() error { return e.error }

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

// pass takes a call through limiters, without a step of its own goroutine in between: behind
// one it waits at the next before another call can pass there. passed gets one value at most.
func pass(gates []*limiter, w waiter, passed chan<- error) {
	if len(gates) == 0 {
		passed <- nil
		return
	}
	w.passes = func() { pass(gates[1:], w, passed) }
	if err := gates[0].enter(w); err != nil {
		passed <- err
	}
}

// learned notes the limits that a provider named in an answer. They bound the target alone, as
// providers limit each model, and only what is not configured.
func (ts *limiters) learned(t config.Target, l link.Limits) {
	p, m := t.Provider.Limits, t.Limits
	if p.RequestsPerMinute > 0 || m.RequestsPerMinute > 0 {
		l.Requests = 0
	}
	if p.TokensPerMinute > 0 || m.TokensPerMinute > 0 {
		l.Tokens = 0
	}
	if l != (link.Limits{}) {
		ts.of(ofTarget, routeName(t)).learn(queue.Limits{RequestsPerMinute: l.Requests, TokensPerMinute: l.Tokens})
	}
}
