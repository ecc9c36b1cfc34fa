// Package queue decides which waiting call of a model is next: weighted fair queueing over
// agents, by tokens. It is pure: times are arguments.
//
// Each agent has a virtual clock that runs ahead by the tokens of its calls, divided by its
// weight. The waiting call with the earliest clock is next. So an agent with a thousand
// calls waiting delays another's first call by one call at most, and agents that always
// wait get tokens in the ratio of their weights. An agent that comes back does not get what
// it did not use: its clock is set to the queue's.
package queue

import (
	"math"
	"time"
)

// Limits bound what runs. 0 is no limit.
type Limits struct {
	Concurrency       int64 // calls at the same time
	RequestsPerMinute int64
	TokensPerMinute   int64
}

// Call is one call that waits or runs.
type Call struct {
	agent  string
	tokens int64
	start  float64 // the agent's clock when it came
	number uint64  // the order of coming, for equal clocks
	runs   bool
}

// Queue is that of one provider and model. The zero value is not of use; New makes one.
type Queue struct {
	limits   Limits
	clock    float64            // of the call that began last
	agents   map[string]float64 // clocks of agents that are ahead of the queue's
	waiting  []*Call
	running  int64
	last     uint64
	requests bucket
	tokens   bucket
}

// New makes a queue.
func New(l Limits) *Queue { return &Queue{limits: l, agents: map[string]float64{}} }

// Limits are those that hold.
func (q *Queue) Limits() Limits { return q.limits }

// SetLimits changes what holds from now on.
func (q *Queue) SetLimits(l Limits) { q.limits = l }

// Enter lets a call wait. weight is the agent's share, at least 1; tokens are an estimate.
func (q *Queue) Enter(agent string, tokens int64, weight int) *Call {
	q.last++
	c := &Call{agent: agent, tokens: max(tokens, 1), number: q.last, start: max(q.agents[agent], q.clock)}
	q.agents[agent] = c.start + float64(c.tokens)/float64(max(weight, 1))
	q.waiting = append(q.waiting, c)
	return c
}

// Next lets the next call run, if one may at now. Without one, wait is how long until it
// may; a negative wait is until another call leaves or enters.
func (q *Queue) Next(now time.Time) (c *Call, wait time.Duration) {
	at := q.first()
	if at < 0 || q.limits.Concurrency > 0 && q.running >= q.limits.Concurrency {
		return nil, -1
	}
	c = q.waiting[at]
	wait = max(q.requests.wait(q.limits.RequestsPerMinute, 1, now), q.tokens.wait(q.limits.TokensPerMinute, c.tokens, now))
	if wait > 0 {
		return nil, wait
	}
	q.requests.take(q.limits.RequestsPerMinute, 1)
	q.tokens.take(q.limits.TokensPerMinute, c.tokens)
	q.waiting = append(q.waiting[:at], q.waiting[at+1:]...)
	q.running++
	c.runs = true
	q.clock = max(q.clock, c.start)
	q.forget()
	return c, 0
}

// first is the index of the waiting call with the earliest clock.
func (q *Queue) first() int {
	at := -1
	for i, c := range q.waiting {
		if at < 0 || c.before(q.waiting[at]) {
			at = i
		}
	}
	return at
}

func (c *Call) before(d *Call) bool {
	return c.start < d.start || c.start == d.start && c.number < d.number
}

// forget drops clocks that are not ahead of the queue's: Enter would set them to it.
func (q *Queue) forget() {
	for agent, clock := range q.agents {
		if clock <= q.clock {
			delete(q.agents, agent)
		}
	}
}

// Leave ends a call that ran, or takes one out that waits.
func (q *Queue) Leave(c *Call) {
	if c.runs {
		c.runs = false
		q.running--
		return
	}
	for i, w := range q.waiting {
		if w == c {
			q.waiting = append(q.waiting[:i], q.waiting[i+1:]...)
			return
		}
	}
}

// Expect says how many waiting calls are before c, which waits too, and how long it is expected
// to wait if a call runs for service; a negative wait is unknown. Those that come later and are
// served earlier are not foreseen.
func (q *Queue) Expect(c *Call, now time.Time, service time.Duration) (before int, wait time.Duration) {
	tokens := min(c.tokens, q.limits.TokensPerMinute)
	for _, w := range q.waiting {
		if w.before(c) {
			before++
			tokens += min(w.tokens, maxDebt*q.limits.TokensPerMinute)
		}
	}
	wait = max(q.requests.after(q.limits.RequestsPerMinute, int64(before)+1, now), q.tokens.after(q.limits.TokensPerMinute, tokens, now))
	over := q.running + int64(before) + 1 - q.limits.Concurrency
	if q.limits.Concurrency <= 0 || over <= 0 {
		return before, wait
	}
	if service <= 0 {
		return before, -1
	}
	rounds := (over + q.limits.Concurrency - 1) / q.limits.Concurrency
	return before, max(wait, time.Duration(rounds)*service)
}

// Waiting is how many calls wait.
func (q *Queue) Waiting() int { return len(q.waiting) }

// bucket holds what may be used at once: a minute's worth at most. What was taken beyond
// that has to be waited for, so that a call larger than the bucket runs as well. Others wait
// for it no longer than maxDebt: an agent may write any number into its request.
type bucket struct {
	used float64   // of the last minute, as if it were given back evenly
	at   time.Time // when used was so
}

// maxDebt bounds what is taken at once, in minutes' worth.
const maxDebt = 3

// wait returns how long until a call of n may begin.
func (b *bucket) wait(perMinute, n int64, now time.Time) time.Duration {
	return b.after(perMinute, min(n, perMinute), now)
}

// after returns how long until n more are free.
func (b *bucket) after(perMinute, n int64, now time.Time) time.Duration {
	if perMinute <= 0 {
		b.used, b.at = 0, now
		return 0
	}
	if passed := now.Sub(b.at); !b.at.IsZero() && passed > 0 {
		b.used = max(0, b.used-passed.Minutes()*float64(perMinute))
	}
	b.at = now
	over := b.used + float64(n) - float64(perMinute)
	if over <= 0 {
		return 0
	}
	return time.Duration(min(math.Ceil(over/float64(perMinute)*float64(time.Minute)), math.MaxInt64/2)) // a larger float would be a negative time
}

func (b *bucket) take(perMinute, n int64) { b.used += float64(min(n, maxDebt*perMinute)) }
