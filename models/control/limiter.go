package control

import (
	"errors"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/models/config"
	"clove.run/clove/models/queue"
)

// maxWait bounds the time that a call waits for its turn.
const maxWait = 10 * time.Minute

// maxWaiting bounds the calls that wait for one limit.
const maxWaiting = 4096

var errCrowded = errors.New("too many calls wait for the provider")

// limiter lets calls through that one limit is for, in the order of a queue.
type limiter struct {
	kind string

	mu      sync.Mutex // guards the following; of two, that of the later kind is taken second
	queue   *queue.Queue
	waiting map[*queue.Call]waiter
	running map[*queue.Call]time.Time // since when
	service time.Duration             // how long a call runs, on average; 0: unknown
	timer   *time.Timer
	lapse   *time.Timer // of limits that were learned; nil: none were
}

// waiter is a call at a limiter. Its functions are called with the lock.
type waiter struct {
	run    agent.ID
	model  string
	tokens int64
	since  time.Time
	taken  func(leave func()) bool // notes how to leave; false: nobody waits any more
	passes func()
}

// enter lets a call wait until it passes. Its leave is called at the end of the call, or of the wait.
func (t *limiter) enter(w waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue.Waiting() >= maxWaiting {
		return errCrowded
	}
	call := t.queue.Enter(string(w.run), w.tokens, 1)
	if !w.taken(sync.OnceFunc(func() { t.leave(call) })) {
		t.queue.Leave(call)
		return nil
	}
	t.waiting[call] = w
	t.next()
	return nil
}

func (t *limiter) leave(call *queue.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if began, ran := t.running[call]; ran {
		t.service = average(t.service, time.Since(began))
	}
	delete(t.running, call)
	delete(t.waiting, call)
	t.queue.Leave(call)
	t.next()
}

// average follows the last calls.
func average(before, last time.Duration) time.Duration {
	if before == 0 {
		return last
	}
	return (7*before + last) / 8
}

// next lets through whatever may run now. t.mu is held.
func (t *limiter) next() {
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
		w := t.waiting[call]
		delete(t.waiting, call)
		t.running[call] = time.Now()
		w.passes()
	}
}

// with sets the limits that are configured now: a reload may have changed them, while calls
// wait.
func (t *limiter) with(l config.Limits) *limiter {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.SetLimits(queue.Limits{Concurrency: l.Concurrency, RequestsPerMinute: l.RequestsPerMinute, TokensPerMinute: l.TokensPerMinute})
	return t
}

// learnTime is how long a limit holds that a provider has named. Without an answer that names it
// again it lapses, so that a wrong one delays calls by no more.
const learnTime = time.Minute

// learn sets limits that a provider has named.
func (t *limiter) learn(l queue.Limits) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.SetLimits(l)
	if t.lapse == nil {
		t.lapse = time.AfterFunc(learnTime, t.unlearn)
	}
	t.lapse.Reset(learnTime)
	t.next()
}

// unlearn lets through what waits for a limit that has lapsed.
func (t *limiter) unlearn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue.SetLimits(queue.Limits{})
	t.next()
}

// The kinds of limiters, in the order in which a call passes them.
const (
	ofModel    = "model"
	ofTarget   = "target"
	ofProvider = "provider"
)

// limiters are those of a configuration's models, targets and providers.
type limiters struct {
	maxWait time.Duration // of a call for its turn

	mu  sync.Mutex // guards all
	all map[string]*limiter
}

// of returns the one of a kind with a name.
func (ts *limiters) of(kind, name string) *limiter {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.all[kind+" "+name]
	if t == nil {
		t = &limiter{kind: kind, queue: queue.New(queue.Limits{}), waiting: map[*queue.Call]waiter{}, running: map[*queue.Call]time.Time{}}
		ts.all[kind+" "+name] = t
	}
	return t
}
