package api

import (
	"time"

	"clove.run/clove/agent"
)

// NoteEvent is the notification of event.follow.
const NoteEvent = "event.happened"

// EventParams choose the events. Those of runs that the caller does not own are left out.
type EventParams struct {
	// After is the sequence number of the last event that the caller knows;
	// absent: only what happens from now on. 0 asks for all that is kept.
	After  *uint64              `json:"after,omitempty"`
	Since  time.Time            `json:"since,omitzero"`
	Follow bool                 `json:"follow,omitempty"` // go on until the request is cancelled
	Run    string               `json:"run,omitempty"`    // only of the run with this name or id
	What   []agent.RunEventKind `json:"what,omitempty"`   // only these
}

// EventNote is the notification of one event.
type EventNote struct {
	ID    any             `json:"id"`
	Event *agent.RunEvent `json:"event,omitempty"`
	// Gap says that some events after the asked number are kept no longer: read
	// the runs anew.
	Gap bool `json:"gap,omitempty"`
}

// EventResult is where to go on.
type EventResult struct {
	Last uint64 `json:"last"`
}
