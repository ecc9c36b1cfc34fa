package service

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"clove.run/clove/agent"
)

// Bounds of what one agent's calls put into the list of events, which holds some thousands for the
// whole installation: an agent that derives grants in a loop must not push out the others'. The
// audit log has all.
const (
	eventBurst = 20
	eventEvery = 5 * time.Second
)

// eventBound bounds the events of one run's agent.
type eventBound struct {
	mu      sync.Mutex // guards the following
	left    float64
	at      time.Time
	skipped int
}

// may reports whether one more event may be noted, and how many were not since the last one.
func (b *eventBound) may(now time.Time, every time.Duration) (skipped int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at.IsZero() {
		b.left = eventBurst
	}
	b.left, b.at = min(eventBurst, b.left+max(0, now.Sub(b.at).Seconds()/every.Seconds())), now
	if b.left < 1 {
		b.skipped++
		return 0, false
	}
	skipped, b.skipped = b.skipped, 0
	b.left--
	return skipped, true
}

// noteAll passes on the events of a call that is decided.
func (s *supervisors) noteAll(c *Call) {
	for _, event := range c.out.Events {
		detail, run := event.Detail, cmp.Or(event.Run, c.Run.Spec.ID)
		if event.Bounded && (c.Agent || event.Run != "") {
			a := s.attachmentOf(run)
			if a == nil {
				continue
			}
			skipped, ok := a.bound(event.Bound).may(c.Now, eventEvery)
			if !ok {
				continue
			}
			detail += unnoted(skipped)
		}
		call := cmp.Or(event.Call, c.ID)
		s.note(agent.RunEvent{Time: c.Now, Kind: event.Kind, ID: run, Detail: detail, Causation: call, Correlation: call})
	}
}

// unnoted says how many events are missing before one.
func unnoted(skipped int) string {
	if skipped == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d events before it are in the audit log only)", skipped)
}

// Note passes on an event of a run with a supervisor that follows from a call, as far as its kind's
// own bound allows: at most one in each interval, after a first burst.
func (s *supervisors) Note(run agent.ID, kind agent.RunEventKind, call, detail string, every time.Duration) {
	a := s.attachmentOf(run)
	if a == nil {
		return
	}
	now := s.now()
	if skipped, ok := a.bound(kind).may(now, every); ok {
		s.note(agent.RunEvent{Time: now, Kind: kind, ID: run, Detail: detail + unnoted(skipped), Causation: call, Correlation: call})
	}
}

// bound returns the bound of a kind of events.
func (a *attachment) bound(kind agent.RunEventKind) *eventBound {
	b, _ := a.events.LoadOrStore(kind, &eventBound{})
	return b.(*eventBound)
}

func (s *supervisors) note(event agent.RunEvent) {
	if s.event != nil {
		s.event(event)
	}
}

// causes has, by run, the call from which the run's end follows.
type causes struct {
	keep func(call string, runs ...agent.ID) // Config.Caused

	mu  sync.Mutex // guards ids
	ids map[agent.ID]string
}

// Caused notes that what happens to runs next follows from a call, for their events and entries. It waits for a
// transaction, and is called before the runs end.
func (c *causes) Caused(id string, runs ...agent.ID) {
	c.note(id, runs)
	if c.keep != nil {
		c.keep(id, runs...)
	}
}

func (c *causes) note(id string, runs []agent.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = map[agent.ID]string{}
	}
	for _, run := range runs {
		c.ids[run] = id
	}
}

// Cause returns it once; empty: none is known.
func (c *causes) Cause(run agent.ID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.ids[run]
	delete(c.ids, run)
	return id
}
