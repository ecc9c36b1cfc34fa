package route

import "time"

const (
	// Share is how many calls allow one more retry.
	Share = 5
	// Floor is how many retries there may be beside, so that few calls have some.
	Floor = 3
	// Window is the time in which calls and retries are counted.
	Window = time.Minute
)

// Retries bound how many calls are repeated elsewhere: where a provider fails most calls, a
// repetition of each would double the load of the others. The zero value is ready.
type Retries struct{ counts map[string]*count }

// count is what happened under one name since a time.
type count struct {
	since          time.Time
	calls, retries int64
}

// Called counts a call under a name.
func (r *Retries) Called(name string, now time.Time) { r.of(name, now).calls++ }

// Take reports whether one more call under a name may be repeated, and counts it.
func (r *Retries) Take(name string, now time.Time) bool {
	c := r.of(name, now)
	if c.retries >= Floor+c.calls/Share {
		return false
	}
	c.retries++
	return true
}

// of returns the count of a name. A clock that was set back begins it anew.
func (r *Retries) of(name string, now time.Time) *count {
	c := r.counts[name]
	if c != nil && !c.over(now) {
		return c
	}
	for other, c := range r.counts {
		if c.over(now) {
			delete(r.counts, other)
		}
	}
	if r.counts == nil {
		r.counts = map[string]*count{}
	}
	c = &count{since: now}
	r.counts[name] = c
	return c
}

func (c *count) over(now time.Time) bool { return now.Before(c.since) || now.Sub(c.since) >= Window }
