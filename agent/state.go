package agent

import "fmt"

// State is where a run stands.
type State string

// The states, in the order of a life. A run that is being torn down is still
// what it was: it ends in the transaction that stores its record.
const (
	StateQueued   State = "queued"   // cloved has it and will start it: it has nothing on the host
	StateStarting State = "starting" // leased an id range, being built
	StateRunning  State = "running"  // clove-init said that the agent executes
	StateEnded    State = "ended"    // the record is final
)

// Event is what moves a run from one state to the next.
type Event string

// The events.
const (
	EventAdmitted Event = "admitted" // a supervisor begins it
	EventStarted  Event = "started"  // the agent executes
	EventRecorded Event = "recorded" // it ended, or a launch step failed, and the record says how
	EventLost     Event = "lost"     // its supervisor died, and another process cleaned up
	EventRequeued Event = "requeued" // it is to run again
)

// States and AllEvents list every value, for tables, tests and the diagram.
var (
	States    = []State{StateQueued, StateStarting, StateRunning, StateEnded}
	AllEvents = []Event{EventAdmitted, EventStarted, EventRecorded, EventLost, EventRequeued}
)

// transitions is the one table; a pair that is absent is forbidden.
var transitions = map[State]map[Event]State{
	StateQueued:   {EventAdmitted: StateStarting, EventRecorded: StateEnded, EventLost: StateEnded},
	StateStarting: {EventStarted: StateRunning, EventRecorded: StateEnded, EventLost: StateEnded},
	StateRunning:  {EventRecorded: StateEnded, EventLost: StateEnded},
	StateEnded:    {EventRequeued: StateQueued},
}

// Next returns the state that follows from s on event e, or an error where
// the table has none.
func (s State) Next(e Event) (State, error) {
	if next, ok := transitions[s][e]; ok {
		return next, nil
	}
	return s, fmt.Errorf("cannot apply event %q in state %q", e, s)
}
