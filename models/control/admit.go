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

// maxWaiting bounds the calls that wait for one provider.
const maxWaiting = 4096

// turnstile lets calls of one provider and model through, in the order of a queue.
type turnstile struct {
	mu      sync.Mutex // guards the following
	queue   *queue.Queue
	waiting map[*queue.Call]chan struct{} // closed when the call may run
	timer   *time.Timer
}

var errCrowded = errors.New("too many calls wait for the provider")

// enter waits until a call of an agent may run. The caller calls leave at its end.
func (t *turnstile) enter(ctx context.Context, run agent.ID, tokens int64, weight int) (leave func(), err error) {
	t.mu.Lock()
	if t.queue.Waiting() >= maxWaiting {
		t.mu.Unlock()
		return nil, errCrowded
	}
	call, begins := t.queue.Enter(string(run), tokens, weight), make(chan struct{})
	t.waiting[call] = begins
	t.next()
	t.mu.Unlock()
	leave = sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waiting, call)
		t.queue.Leave(call)
		t.next()
	})
	select {
	case <-begins:
		return leave, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// next lets through whatever may run now. t.mu is held.
func (t *turnstile) next() {
	if t.timer != nil {
		t.timer.Stop()
	}
	for {
		call, wait := t.queue.Next(time.Now())
		if call == nil {
			if wait > 0 {
				t.timer = time.AfterFunc(wait, func() { t.mu.Lock(); defer t.mu.Unlock(); t.next() })
			}
			return
		}
		close(t.waiting[call])
		delete(t.waiting, call)
	}
}

// turnstiles are those of a configuration's targets.
type turnstiles struct {
	mu  sync.Mutex // guards all
	all map[string]*turnstile
}

// of returns the one with a name, with the limits that hold now: a reload may have changed
// them, while calls wait.
func (ts *turnstiles) of(name string, l config.Limits) *turnstile {
	limits := queue.Limits{Concurrency: l.Concurrency, RequestsPerMinute: l.RequestsPerMinute, TokensPerMinute: l.TokensPerMinute}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.all[name]
	if t == nil {
		t = &turnstile{queue: queue.New(limits), waiting: map[*queue.Call]chan struct{}{}}
		ts.all[name] = t
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.SetLimits(limits)
	return t
}

// places are those that a call has taken. A nil one was not taken.
type places struct{ model, provider func() }

// leave gives all back.
func (p places) leave() {
	for _, leave := range []func(){p.provider, p.model} {
		if leave != nil {
			leave()
		}
	}
}

// admit waits until there is room for a call to a target. Both the provider and the model may
// limit calls; the provider's queue is the second, so that no call that waits for its model
// takes a place there. A call that goes on with another target keeps its model's place.
func (c *Control) admit(k *call) *link.Refuse {
	run, tokens := k.served.run.Spec.ID, k.begin.In+max(k.begin.Out, 1)*k.begin.N
	var err error
	if k.places.model == nil {
		k.places.model, err = c.gates.of("model "+k.target.Name, k.target.Limits).enter(k.ctx, run, tokens, 1)
	}
	if k.places.provider != nil {
		k.places.provider()
	}
	if err == nil {
		k.places.provider, err = c.gates.of("provider "+k.target.Provider.Name, k.target.Provider.Limits).enter(k.ctx, run, tokens, 1)
	}
	if err != nil {
		return &link.Refuse{Reason: link.ReasonBusy, Message: err.Error(), After: 1}
	}
	return nil
}
