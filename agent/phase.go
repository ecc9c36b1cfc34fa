package agent

import "time"

// Phase is where a run stands between and during its starts, more finely than
// State. It is not stored: it is derived from State and three marks of QueueState
// (StopAsked, GivenUp, Scheduled). Paused and Fresh are no part of it: a live
// agent of any phase may be frozen, and any start may be fresh.
type Phase string

// The phases.
const (
	PhaseScheduled Phase = "scheduled" // queued until the next time of its schedule
	PhaseWaiting   Phase = "waiting"   // queued until the scheduler starts it
	PhaseLeaving   Phase = "leaving"   // queued and marked for stop: it ends without a start
	PhaseStarting  Phase = "starting"
	PhaseRunning   Phase = "running"
	PhaseStopping  Phase = "stopping" // starting or running, and marked for stop
	PhaseEnded     Phase = "ended"    // its restart policy or its schedule may queue it again
	PhaseGivenUp   Phase = "given-up" // its policy has no restarts left; its schedule may queue it again
	PhaseStopped   Phase = "stopped"  // ended and marked for stop: only a person queues it again
)

// The events that change the phase and not the state, and the two other ways
// back into the queue than EventRequeued, which is the restart policy's.
const (
	EventDue       Event = "due"        // a time of its schedule has come
	EventStopAsked Event = "stop-asked" // a person wants its end
	EventGivenUp   Event = "given-up"   // its policy has no restarts left
	EventScheduled Event = "scheduled"  // it is to run again at the next time of its schedule
	EventRestarted Event = "restarted"  // a person wants it to run again, now
)

// phases is the table of phases; a pair that is absent changes nothing.
var phases = map[Phase]map[Event]Phase{
	PhaseScheduled: {EventDue: PhaseWaiting, EventRestarted: PhaseWaiting, EventStopAsked: PhaseLeaving, EventRecorded: PhaseEnded, EventLost: PhaseEnded},
	PhaseWaiting:   {EventAdmitted: PhaseStarting, EventRestarted: PhaseWaiting, EventStopAsked: PhaseLeaving, EventRecorded: PhaseEnded, EventLost: PhaseEnded},
	// A supervisor that was on its way when the stop came still begins the run.
	PhaseLeaving:  {EventAdmitted: PhaseStopping, EventRestarted: PhaseWaiting, EventStopAsked: PhaseLeaving, EventRecorded: PhaseStopped, EventLost: PhaseStopped},
	PhaseStarting: {EventStarted: PhaseRunning, EventStopAsked: PhaseStopping, EventRecorded: PhaseEnded, EventLost: PhaseEnded},
	PhaseRunning:  {EventStopAsked: PhaseStopping, EventRecorded: PhaseEnded, EventLost: PhaseEnded},
	PhaseStopping: {EventStarted: PhaseStopping, EventStopAsked: PhaseStopping, EventRecorded: PhaseStopped, EventLost: PhaseStopped},
	PhaseEnded:    {EventRequeued: PhaseWaiting, EventScheduled: PhaseScheduled, EventRestarted: PhaseWaiting, EventGivenUp: PhaseGivenUp, EventStopAsked: PhaseStopped},
	PhaseGivenUp:  {EventScheduled: PhaseScheduled, EventRestarted: PhaseWaiting, EventStopAsked: PhaseStopped},
	PhaseStopped:  {EventRestarted: PhaseWaiting, EventStopAsked: PhaseStopped},
}

// Phase derives the phase from what is stored.
func (r *Run) Phase() Phase {
	t := &r.Queue
	switch {
	// In each state StopAsked comes first, because it outweighs the other marks.
	case r.State == StateQueued && t.StopAsked:
		return PhaseLeaving
	case r.State == StateQueued && t.Scheduled:
		return PhaseScheduled
	case r.State == StateQueued:
		return PhaseWaiting
	case r.State == StateEnded && t.StopAsked:
		return PhaseStopped
	case r.State == StateEnded && t.GivenUp:
		return PhaseGivenUp
	case r.State == StateEnded:
		return PhaseEnded
	case t.StopAsked:
		return PhaseStopping
	case r.State == StateStarting:
		return PhaseStarting
	}
	return PhaseRunning
}

// Stopped returns the request that ended the run: nil where it lives, and where the request came
// after its end, only to keep its policy from starting it again.
func (r *Run) Stopped() *Stopped {
	if by := r.Queue.Stopped; r.Record != nil && r.Phase() == PhaseStopped && by != nil && !by.Time.After(r.Record.Ended) {
		return by
	}
	return nil
}

// mark stores what an event means for the phase: it is the only writer of the
// marks. It reports whether the table has the event. The state is the store's
// to change, in the same transaction.
func (r *Run) mark(e Event) bool {
	if _, found := phases[r.Phase()][e]; !found {
		return false
	}
	t := &r.Queue
	switch e {
	case EventStopAsked:
		t.StopAsked = true // GivenUp and Scheduled stay: they say how the run came to wait, or to end
	case EventGivenUp:
		t.GivenUp = true
	case EventDue, EventRequeued:
		t.Scheduled = false
	case EventScheduled:
		t.Scheduled, t.GivenUp = true, false
	case EventRestarted:
		t.StopAsked, t.GivenUp, t.Scheduled = false, false, false
	}
	return true
}

// NewQueueState is that of a run that is queued for the first time.
func NewQueueState(s Spec, now time.Time) QueueState {
	// The first start counts when it is queued, as each later one does in join.
	t := QueueState{Since: now, Starts: 1}
	if s.Schedule != "" {
		t.Scheduled, t.Settled = true, now
	}
	return t
}

// MarkForStop notes that a user wants the run's end, and which one: neither policy
// nor schedule starts it again. It is possible in every phase.
func (r *Run) MarkForStop(by Stopped) {
	r.mark(EventStopAsked)
	r.Queue.Stopped = &by
}

// GiveUp notes that the restart policy has no restarts left.
func (r *Run) GiveUp() { r.mark(EventGivenUp) }

// Due notes that a time of the schedule has come: the run waits from now on.
func (r *Run) Due(now time.Time) {
	if r.mark(EventDue) {
		r.Queue.NotBefore, r.Queue.Since = time.Time{}, now
	}
}

// RequeueByPolicy prepares the restart after an end: not before a time, and as
// the given one in a row.
func (r *Run) RequeueByPolicy(restarts int, notBefore, now time.Time) {
	if r.mark(EventRequeued) {
		r.join(now)
		r.Queue.Restarts, r.Queue.NotBefore, r.Queue.Fresh = restarts, notBefore, false
	}
}

// RequeueBySchedule prepares the wait for the next time of the schedule. That
// begins with a new layer, unless the spec keeps files.
func (r *Run) RequeueBySchedule(now time.Time) {
	if r.mark(EventScheduled) {
		r.join(now)
		r.Queue.Restarts, r.Queue.NotBefore, r.Queue.Fresh = 0, time.Time{}, !r.Spec.KeepFiles
	}
}

// Restart prepares the start that a person asked for: whatever kept the run
// from starting before is forgotten, also a delay.
func (r *Run) Restart(fresh bool, now time.Time) {
	if !r.mark(EventRestarted) {
		return
	}
	if r.State == StateEnded {
		r.join(now)
	}
	t := &r.Queue
	t.NotBefore, t.Restarts, t.Stopped, t.Cause, t.Paused, t.Fresh = time.Time{}, 0, nil, "", false, fresh
	if r.Spec.Schedule != "" {
		t.Settled = now // the times until now are not made up for
	}
}

// join is what every way from an end into the queue has in common.
func (r *Run) join(now time.Time) {
	r.Queue.Since, r.Queue.Starts, r.Queue.Paused, r.Queue.Ready, r.Queue.Cause = now, r.Queue.Starts+1, false, time.Time{}, ""
}

// SetReady notes that the agent is ready, the first time in each start.
func (r *Run) SetReady(now time.Time) {
	if r.Queue.Ready.IsZero() && (r.State == StateStarting || r.State == StateRunning) {
		r.Queue.Ready = now
	}
}

// SetPaused notes that the agent was frozen, or thawed.
func (r *Run) SetPaused(paused bool) { r.Queue.Paused = paused }

// Paused reports whether the agent is frozen now: an end leaves the note as it is.
func (r *Run) Paused() bool { return r.Queue.Paused && r.State == StateRunning }

// DropStaleLayer forgets the layer that a fresh start does not continue with;
// the process that begins the run removes the image.
func (r *Run) DropStaleLayer() {
	if r.Queue.Fresh {
		r.Layer, r.Queue.Fresh = "", false
	}
}

// LastRecord is that of the last start that has ended, nil while another goes
// on. A run that waits for its schedule, or was stopped while it did, has it in
// Previous.
func (r *Run) LastRecord() *Record {
	if r.Queue.Scheduled {
		return r.Previous
	}
	return r.Record
}
