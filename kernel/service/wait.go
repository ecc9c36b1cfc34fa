package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// Topic is what a waiting call waits for a change of, such as mail/ID. A service makes up its own.
type Topic string

// waiter is a call that has not been answered. While it waits it is a value in topics, and has no
// goroutine.
type waiter struct {
	engine  *Engine
	call    *Call
	run     agent.ID // of the call, which a look writes anew
	method  Method
	params  any
	began   time.Time
	reply   Reply
	try     func() (json.RawMessage, error) // takes the call as far as it gets; ErrNotYet: it waits
	turn    bool                            // it has the caller's turn since the stage known
	repeats bool                            // its answer is that of an earlier call with the key
	tried   bool                            // it would be done, if people allow it
	stop    func() bool                     // takes the context's end back; nil: it has not waited
	limit   context.CancelFunc              // ends the bound of its wait; nil: it has none
	rested  bool                            // it has found no work, and waits for that

	// Guarded by topics.mu:
	topic   Topic
	state   waiting
	touched bool // a commit has touched the topic since the last look began
	ended   error
}

type waiting int

const (
	looking waiting = iota // a goroutine works on it
	parked
	answered
)

// begin tries the call, and answers it or lets it wait.
func (w *waiter) begin() {
	w.try = w.pass
	if w.topic != "" {
		w.engine.topics.enter(w)
	}
	w.look()
}

// look tries until the call is answered or waits. A panic of the method is its caller's, and leaves
// nothing behind.
func (w *waiter) look() {
	returned := false
	defer func() {
		if !returned {
			w.forget()
		}
	}()
	w.lookOn()
	returned = true
}

func (w *waiter) lookOn() {
	for {
		result, err := w.try()
		if errors.Is(err, errAsked) {
			w.forPeople()
			err = ErrNotYet
		}
		if !errors.Is(err, ErrNotYet) || w.topic == "" {
			w.answer(result, err)
			return
		}
		if w.stop == nil {
			ctx := w.call.Context // each look writes the call anew, also while the context ends
			w.stop = context.AfterFunc(ctx, func() { w.engine.topics.end(w, gone(ctx)) })
			if w.method.idles {
				w.rested = true
				w.call.activity.rests()
			}
		}
		if w.call.parked.IsZero() {
			w.call.parked = time.Now() // before another goroutine may look
		}
		parked, ended := w.engine.topics.park(w)
		if ended != nil {
			w.giveUp(ended)
			return
		}
		if parked {
			return
		}
	}
}

// answer replies once.
func (w *waiter) answer(result json.RawMessage, err error) {
	w.forget()
	w.conclude(result, err)
}

// giveUp replies to a call that waits no more. That is no refusal.
func (w *waiter) giveUp(why error) {
	w.call.out.Recorded = true
	w.answer(nil, why)
}

// forget ends what a wait has begun.
func (w *waiter) forget() {
	if w.stop != nil {
		w.stop()
	}
	if w.limit != nil {
		w.limit()
	}
	if w.topic != "" {
		w.engine.topics.leave(w)
	}
}

// within bounds the wait, where the parameters do.
func (w *waiter) within() error {
	p, may := w.params.(interface{ WaitMost() int64 })
	if !may || p.WaitMost() == 0 {
		return nil
	}
	most := time.Duration(p.WaitMost()) * time.Millisecond
	if p.WaitMost() < 0 || p.WaitMost() > int64(agent.ClockCeiling/time.Millisecond) {
		return api.Failure(api.CodeParams, "give a time above 0, or leave it out", "a call cannot wait for %d ms", p.WaitMost())
	}
	enough := api.Failure(api.CodeNotFound, "ask again, or allow more", "nothing came within %s", most).By("", api.RuleWithin)
	if sends, own := w.params.(interface{ WaitOver() *api.Error }); own {
		enough = sends.WaitOver()
	}
	w.call.Context, w.limit = context.WithTimeoutCause(w.call.Context, most, enough)
	return nil
}

// gone says why a call's context has ended.
func gone(ctx context.Context) error {
	if enough, is := context.Cause(ctx).(*api.Error); is {
		return enough
	}
	return cancelled()
}

// looksAtOnce bounds the waiting calls that look at once.
const looksAtOnce = 4

// topics are the calls that wait, by what they wait for.
type topics struct {
	mu     sync.Mutex // guards the following
	closed bool
	by     map[Topic]map[*waiter]struct{}
	ready  []*waiter // they look next, in this order
	news   *sync.Cond
	ended  sync.WaitGroup
}

func (t *topics) start() {
	t.by, t.news = map[Topic]map[*waiter]struct{}{}, sync.NewCond(&t.mu)
	for range looksAtOnce {
		t.ended.Go(t.serve)
	}
}

// serve has waiting calls look, until close.
func (t *topics) serve() {
	for {
		t.mu.Lock()
		for len(t.ready) == 0 && !t.closed {
			t.news.Wait()
		}
		if len(t.ready) == 0 {
			t.mu.Unlock()
			return
		}
		w := t.ready[0]
		t.ready = t.ready[1:]
		t.mu.Unlock()
		w.contained()
	}
}

// contained is look for a call that has waited: no caller's goroutine is left to take a panic.
func (w *waiter) contained() {
	defer func() {
		if fault := recover(); fault != nil {
			w.conclude(nil, fmt.Errorf("%s failed: %v", w.call.Method, fault))
		}
	}()
	w.look()
}

// enter makes a call known before it looks, so that no change between its look and its wait is
// missed.
func (t *topics) enter(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by[w.topic] == nil {
		t.by[w.topic] = map[*waiter]struct{}{}
	}
	t.by[w.topic][w] = struct{}{}
}

// park lets a call wait that has found nothing. Where its topic was touched since it began to
// look, it looks again. ended says why it waits no more.
func (t *topics) park(w *waiter) (isParked bool, ended error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.ended == nil && t.closed {
		w.ended = closing()
	}
	switch {
	case w.ended != nil:
		return false, w.ended
	case w.touched:
		w.touched = false
		return false, nil
	}
	w.state = parked
	return true, nil
}

// touch has the calls look again that wait for one of the topics.
func (t *topics) touch(all ...Topic) {
	if len(all) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range all {
		for w := range t.by[topic] {
			if w.state == parked {
				t.next(w)
			} else {
				w.touched = true
			}
		}
	}
}

// again has the calls of a run look again that wait.
func (t *topics) again(run agent.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.by {
		for w := range of {
			switch {
			case w.run != run:
			case w.state == parked:
				t.next(w)
			default:
				w.touched = true
			}
		}
	}
}

// next has a parked call look. t.mu is held.
func (t *topics) next(w *waiter) {
	w.state, w.touched = looking, false
	t.ready = append(t.ready, w)
	t.news.Signal()
}

// end has a call end that waits, now or when its look has found nothing.
func (t *topics) end(w *waiter, why error) {
	t.mu.Lock()
	isParked := w.state == parked
	if isParked {
		w.state = answered
	} else if w.ended == nil {
		w.ended = why
	}
	t.mu.Unlock()
	if isParked {
		w.giveUp(why)
	}
}

// leave drops a call that is answered.
func (t *topics) leave(w *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w.state = answered
	delete(t.by[w.topic], w)
	if len(t.by[w.topic]) == 0 {
		delete(t.by, w.topic)
	}
}

// close answers all calls that wait.
func (t *topics) close() {
	t.mu.Lock()
	t.closed = true
	var all []*waiter
	for _, of := range t.by {
		for w := range of {
			if w.state == parked {
				w.state = answered
				all = append(all, w)
			}
		}
	}
	t.news.Broadcast()
	t.mu.Unlock()
	for _, w := range all {
		w.giveUp(closing())
	}
	t.ended.Wait()
}

func closing() error {
	return api.Failure(api.CodeBusy, "ask again with the same key", "cloved is ending")
}
