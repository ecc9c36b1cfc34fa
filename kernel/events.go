package kernel

import (
	"fmt"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// What one agent's calls put into the list of events, which holds some thousands for the
// whole installation: an agent that derives grants in a loop must not push out the others'.
// The audit log has all.
const (
	eventBurst = 20
	eventEvery = 5 * time.Second
	// Models are what an agent calls all the time.
	modelEventEvery = 30 * time.Second
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

// happened keeps an event of the call's run until the call is decided.
func (c *call) happened(kind agent.RunEventKind, detail string) {
	c.events = append(c.events, agent.RunEvent{Time: c.now, Kind: kind, ID: c.Run.Spec.ID, Detail: detail, Causation: c.ID, Correlation: c.ID})
}

// note passes on the events of a call that is decided.
func (c *call) note() {
	for _, e := range c.events {
		if c.Agent && !ofBudget[e.Kind] {
			a := c.kernel.attachmentOf(e.ID)
			if a == nil {
				continue
			}
			skipped, ok := a.events.may(c.now, eventEvery)
			if !ok {
				continue
			}
			e.Detail += unnoted(skipped)
		}
		c.kernel.note(e)
	}
}

// unnoted says how many events are missing before one.
func unnoted(skipped int) string {
	if skipped == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d events before it are in the audit log only)", skipped)
}

// ModelCalled notes a call of a model by a run's agent, as far as its bound allows. id is the
// call's, as its audit records have it; detail is for people.
func (k *Kernel) ModelCalled(run agent.ID, id, detail string) {
	a := k.attachmentOf(run)
	if a == nil {
		return
	}
	now := k.now()
	if skipped, ok := a.modelEvents.may(now, modelEventEvery); ok {
		k.note(agent.RunEvent{Time: now, Kind: agent.RunModelCalled, ID: run, Detail: detail + unnoted(skipped), Causation: id, Correlation: id})
	}
}

// ofBudget are events that an agent cannot repeat at will.
var ofBudget = map[agent.RunEventKind]bool{agent.RunBudgetWarned: true, agent.RunBudgetEnded: true, agent.RunBudgetPaused: true}

func (k *Kernel) note(e agent.RunEvent) {
	if k.config.Note != nil {
		k.config.Note(e)
	}
}

// spendingHappened keeps the events of a change of budgets. What ends or pauses a run is the
// cause of its end.
func (c *call) spendingHappened(e budget.Effects) {
	for _, n := range e.Warned {
		c.happened(agent.RunBudgetWarned, noticeText(n))
	}
	for _, n := range e.Ended {
		kind := agent.RunBudgetEnded
		if n.AtEnd == budget.Pause {
			kind = agent.RunBudgetPaused
		}
		c.ends = c.ends || n.AtEnd == budget.End
		c.happened(kind, noticeText(n)+", at end: "+string(n.AtEnd))
	}
}

func noticeText(n budget.Notice) string {
	return fmt.Sprintf("%s of %s: %d of %d", n.Dimension, n.Account, n.Used+n.Reserved, n.Granted)
}

// causes has, by run, the call that spent a budget: what the run's end follows from.
type causes struct {
	mu  sync.Mutex // guards ids
	ids map[agent.ID]string
}

// set notes the cause of what happens to a run next.
func (c *causes) set(run agent.ID, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = map[agent.ID]string{}
	}
	c.ids[run] = id
}

// take returns it once; empty: none is known.
func (c *causes) take(run agent.ID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.ids[run]
	delete(c.ids, run)
	return id
}

// Caused notes that what happens to runs next follows from a call, for their entries.
func (k *Kernel) Caused(id string, runs []agent.Run) {
	for _, run := range runs {
		k.causes.set(run.Spec.ID, id)
	}
}
