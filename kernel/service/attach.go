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
	run      agent.Run
	changed  func(api.Standing)
	refused  atomic.Int64
	events   sync.Map      // of *eventBound, by kind
	activity *activity     // nil: the run is not ended for being idle
	places   chan struct{} // has an element for each change of the agent's that is being decided

	turn  sync.Mutex // one notification after the other, so that the last one is the newest; guards the following
	start int        // the number of the start that began with Attach
	last  *api.Standing
	again *time.Timer // when to report anew though nothing is changed
}

// supervisors are those that are attached. They learn how their runs stand, and get the notices to
// agents.
type supervisors struct {
	read     func(func(*store.KernelTx) error) error
	now      func() time.Time
	standing Standing
	event    func(agent.RunEvent) // nil: events are dropped
	idle     func(agent.Run)      // nil: no run is ended for being idle

	mu       sync.Mutex // guards the following
	attached map[agent.ID]*attachment
	direct   map[agent.ID]*Direct
}

// Direct passes notices to a run's agent without its supervisor, and reports whether it takes them. It does not
// block.
type Direct func([]api.Notice) bool

// Notices has notices go to a run's agent directly, but for those that its supervisor needs, until leave. Those
// that leave is given are passed on by the supervisor.
func (s *supervisors) Notices(run agent.ID, direct Direct) (leave func(left []api.Notice)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.direct == nil {
		s.direct = map[agent.ID]*Direct{}
	}
	s.direct[run] = &direct
	return func(left []api.Notice) {
		s.mu.Lock()
		if s.direct[run] == &direct {
			delete(s.direct, run)
		}
		s.mu.Unlock()
		_ = s.notify(run, left)
	}
}

// directly passes notices on without the supervisor, if it can. The supervisor needs the warnings of budgets: it
// shows them to the user.
func (s *supervisors) directly(run agent.ID, notices []api.Notice) bool {
	s.mu.Lock()
	direct := s.direct[run]
	s.mu.Unlock()
	return direct != nil && !slices.ContainsFunc(notices, func(n api.Notice) bool { return n.Method == api.NoteBudgetWarning }) && (*direct)(notices)
}

// Attach reports to a supervisor how its run stands: once before it returns, and after each change
// until ctx ends. start is the number of the run's start.
func (e *Engine) Attach(ctx context.Context, run agent.Run, start int, notices []Notice, changed func(api.Standing)) error {
	err := e.attach(ctx, run, start, notices, changed)
	_ = e.resume(run.Spec.ID) // a call that cannot be done must not keep its run from starting; the next attachment tries again
	return err
}

func (s *supervisors) attach(ctx context.Context, run agent.Run, start int, notices []Notice, changed func(api.Standing)) error {
	a := &attachment{run: run, start: start, changed: changed, places: make(chan struct{}, decidedAtOnce)}
	if most := run.Spec.Kernel.Idle; most > 0 && s.idle != nil {
		a.activity = &activity{most: most, over: func() { s.idle(run) }}
	}
	s.mu.Lock()
	s.attached[run.Spec.ID] = a
	s.mu.Unlock()
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.attached[run.Spec.ID] == a {
			delete(s.attached, run.Spec.ID)
		}
		// A timer that is left finds no attachment.
	})
	first := Outcome{Notices: map[agent.ID][]Notice{run.Spec.ID: notices}}
	return s.publish(run.Spec.ID, first.notices(run.Spec.ID))
}

// Attached returns the runs that have a supervisor.
func (s *supervisors) Attached() []agent.Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []agent.Run
	for _, a := range s.attached {
		all = append(all, a.run)
	}
	return all
}

// Refused is how many calls of a run's agent were refused since its supervisor attached.
func (s *supervisors) Refused(run agent.ID) int64 {
	if a := s.attachmentOf(run); a != nil {
		return a.refused.Load()
	}
	return 0
}

// attachmentOf returns that of a run; nil: no supervisor is attached.
func (s *supervisors) attachmentOf(run agent.ID) *attachment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.attached[run]
}

// activityOf returns that of a caller's agent; nil: it is not ended for being idle.
func (s *supervisors) activityOf(c Caller) *activity {
	if !c.Agent || c.Run.Spec.Kernel.Idle == 0 {
		return nil
	}
	if a := s.attachmentOf(c.Run.Spec.ID); a != nil {
		return a.activity
	}
	return nil
}

// report tells the supervisors of all runs that a call concerns.
func (s *supervisors) report(c *Call) (failed error) {
	out := c.out
	changed := slices.Clone(out.Changed)
	if out.Below != nil {
		for _, run := range s.Attached() {
			if out.Below(run) {
				changed = append(changed, run.Spec.ID)
			}
		}
	}
	slices.Sort(changed)
	for _, run := range slices.Compact(changed) {
		failed = cmp.Or(failed, s.publish(run, out.notices(run)))
	}
	for _, run := range slices.Sorted(maps.Keys(out.Notices)) {
		if !slices.Contains(changed, run) {
			failed = cmp.Or(failed, s.notify(run, out.notices(run)))
		}
	}
	return failed
}

// ClockSet reports anew how every run stands. The wall clock was set: a timer counts seconds
// of CLOCK_MONOTONIC, and would let a grant go on beyond its expiry.
func (s *supervisors) ClockSet() (failed error) {
	for _, run := range s.Attached() {
		failed = cmp.Or(failed, s.publish(run.Spec.ID, nil))
	}
	return failed
}

// lookAgain bounds the wait for a moment: the clock may be set forward, and a timer does not
// notice that.
const lookAgain = time.Minute

// publish reads how a run stands, and reports it to its supervisor, if one is attached.
func (s *supervisors) publish(run agent.ID, notices []api.Notice) error {
	a := s.attachmentOf(run)
	if a == nil {
		return nil
	}
	a.turn.Lock()
	defer a.turn.Unlock()
	now := s.now()
	var how api.Standing
	var until time.Time
	err := s.read(func(tx *store.KernelTx) (err error) {
		how, until, err = s.standing(tx, a.run, now)
		return err
	})
	if err != nil {
		return err
	}
	if a.again != nil {
		a.again.Stop()
	}
	if !until.IsZero() {
		a.again = time.AfterFunc(min(until.Sub(now), lookAgain), func() { _ = s.publish(run, nil) }) // the next change tries again
	}
	how.Start = a.start
	a.last = &how
	a.send(notices)
	return nil
}

// notify passes notices to a run's agent, with the standing that was reported last.
func (s *supervisors) notify(run agent.ID, notices []api.Notice) error {
	a := s.attachmentOf(run)
	if a == nil || len(notices) == 0 || s.directly(run, notices) {
		return nil
	}
	a.turn.Lock()
	known := a.last != nil
	if known {
		a.send(notices)
	}
	a.turn.Unlock()
	if !known {
		return s.publish(run, notices)
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
