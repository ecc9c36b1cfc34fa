package service

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/store"
)

// attachment is a supervisor that wants to know how its run stands.
type attachment struct {
	run     agent.Run
	changed func(api.Standing)
	refused atomic.Int64
	events  sync.Map      // of *eventBound, by kind
	places  chan struct{} // has an element for each change of the agent's that is being decided

	turn  sync.Mutex // one notification after the other, so that the last one is the newest; guards the following
	start int        // the number of the start that began with Attach
	last  *api.Standing
	again *time.Timer // when to report anew though nothing is changed
}

// Attach reports to a supervisor how its run stands: once before it returns, and after each change
// until ctx ends. start is the number of the run's start.
func (e *Engine) Attach(ctx context.Context, run agent.Run, start int, notices []Notice, changed func(api.Standing)) error {
	a := &attachment{run: run, start: start, changed: changed, places: make(chan struct{}, decidedAtOnce)}
	e.mu.Lock()
	e.attached[run.Spec.ID] = a
	e.mu.Unlock()
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.attached[run.Spec.ID] == a {
			delete(e.attached, run.Spec.ID)
		}
		// A timer that is left finds no attachment.
	})
	first := Outcome{Notices: map[agent.ID][]Notice{run.Spec.ID: notices}}
	err := e.publish(run.Spec.ID, first.notices(run.Spec.ID))
	_ = e.resume(run.Spec.ID) // a call that cannot be done must not keep its run from starting; the next attachment tries again
	return err
}

// Attached returns the runs that have a supervisor.
func (e *Engine) Attached() []agent.Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []agent.Run
	for _, a := range e.attached {
		all = append(all, a.run)
	}
	return all
}

// Refused is how many calls of a run's agent were refused since its supervisor attached.
func (e *Engine) Refused(run agent.ID) int64 {
	if a := e.attachmentOf(run); a != nil {
		return a.refused.Load()
	}
	return 0
}

// attachmentOf returns that of a run; nil: no supervisor is attached.
func (e *Engine) attachmentOf(run agent.ID) *attachment {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.attached[run]
}

// report tells the supervisors of all runs that a call concerns.
func (e *Engine) report(c *Call) (failed error) {
	out := c.out
	changed := slices.Clone(out.Changed)
	if out.Below != nil {
		for _, run := range e.Attached() {
			if out.Below(run) {
				changed = append(changed, run.Spec.ID)
			}
		}
	}
	slices.Sort(changed)
	for _, run := range slices.Compact(changed) {
		failed = firstError(failed, e.publish(run, out.notices(run)))
	}
	for _, run := range slices.Sorted(maps.Keys(out.Notices)) {
		if !slices.Contains(changed, run) {
			failed = firstError(failed, e.notify(run, out.notices(run)))
		}
	}
	return failed
}

// ClockSet reports anew how every run stands. The wall clock was set: a timer counts seconds
// of CLOCK_MONOTONIC, and would let a grant go on beyond its expiry.
func (e *Engine) ClockSet() (failed error) {
	for _, run := range e.Attached() {
		failed = firstError(failed, e.publish(run.Spec.ID, nil))
	}
	return failed
}

// lookAgain bounds the wait for a moment: the clock may be set forward, and a timer does not
// notice that.
const lookAgain = time.Minute

// publish reads how a run stands, and reports it to its supervisor, if one is attached.
func (e *Engine) publish(run agent.ID, notices []api.Notice) error {
	a := e.attachmentOf(run)
	if a == nil {
		return nil
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	now := e.now()
	var standing api.Standing
	var until time.Time
	err := e.Read(func(tx *store.KernelTx) (err error) {
		standing, until, err = e.config.Standing(tx, a.run, now)
		return err
	})
	if err != nil {
		return err
	}
	if a.again != nil {
		a.again.Stop()
	}
	if !until.IsZero() {
		a.again = time.AfterFunc(min(until.Sub(now), lookAgain), func() { _ = e.publish(run, nil) }) // the next change tries again
	}
	standing.Start = a.start
	a.last = &standing
	a.send(notices)
	return nil
}

// notify passes notices to a run's agent, with the standing that was reported last.
func (e *Engine) notify(run agent.ID, notices []api.Notice) error {
	a := e.attachmentOf(run)
	if a == nil || len(notices) == 0 {
		return nil
	}
	a.turn.Lock()
	known := a.last != nil
	if known {
		a.send(notices)
	}
	a.turn.Unlock()
	if !known {
		return e.publish(run, notices)
	}
	return nil
}

// send reports the last standing with notices. a.turn is held.
func (a *attachment) send(notices []api.Notice) {
	now := *a.last
	now.Notices = notices
	a.changed(now)
}

// sent is a notice on the wire.
func (n Notice) sent() api.Notice {
	params := n.Params
	if params == nil {
		params = api.Nothing{}
	}
	text, _ := json.Marshal(params) // a value of clove's own making always encodes
	return api.Notice{Method: n.Kind, Params: text, Key: cmp.Or(n.Key, n.Kind)}
}
