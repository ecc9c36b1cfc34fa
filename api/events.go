package api

import (
	"encoding/json"
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

// EventAppendParams is an event of the agent's own.
type EventAppendParams struct {
	Kind string          `json:"kind"`           // agent. and a name of the agent's: lower-case letters, digits and _.-
	Body json.RawMessage `json:"body,omitempty"` // JSON of at most EventBodyMost bytes
	// Causation is what the event follows from: the id of an event, of a call, or of a message in the agent's
	// mailbox. Absent: nothing else than what the run began with.
	Causation string `json:"causation,omitempty"`
	Keyed
}

// EventBodyMost bounds EventAppendParams.Body, in bytes.
const EventBodyMost = 4 << 10

// EventAppendResult names the event.
type EventAppendResult struct {
	ID string `json:"id"` // also that of the call
}

// TraceParams asks from what something follows, or what follows from it.
type TraceParams struct {
	ID    string `json:"id"`              // of an event, a call, a message or a run
	Depth int    `json:"depth,omitempty"` // at most so many steps, 1 to 100; absent: 10
	Down  bool   `json:"down,omitempty"`  // what follows from it, at most 100 records; absent: from what it follows
}

// TraceResult is a chain of causes.
type TraceResult struct {
	// Steps has the one that was asked for first, and behind each what it follows from, or with Down what follows from it.
	Steps     []TraceStep `json:"steps"`
	Truncated bool        `json:"truncated"` // there are more
}

// TraceStep is a record of the audit log in a chain of causes: an event of an agent's, a call, or the start or
// the end of a run.
type TraceStep struct {
	ID        string          `json:"id" col:"ID"` // of the event or the call; of a start the run's
	Time      time.Time       `json:"time" col:"WHEN,age"`
	Kind      string          `json:"kind"` // as in the audit log
	Owner     uint32          `json:"owner"`
	Namespace string          `json:"namespace,omitempty"`
	Principal string          `json:"principal,omitempty" col:"AGENT"` // the caller
	Agent     string          `json:"agent,omitempty" col:"AGENT"`     // the name of the run
	Run       agent.ID        `json:"run,omitempty"`
	Method    string          `json:"method" col:"METHOD"`
	What      string          `json:"what,omitempty" col:"WHAT,,cut"`
	Object    string          `json:"object,omitempty"` // ids of what it made or took
	Verdict   string          `json:"verdict,omitempty"`
	Causation string          `json:"causation,omitempty"`
	Depth     int             `json:"depth,omitempty"`                    // with Down: from the first one
	Body      json.RawMessage `json:"body,omitempty" col:"BODY,json,cut"` // of an agent's event, while it is kept
}
