package agent

import "time"

// Occurrence is one thing that happened to a run, as the store numbered it.
// Sequence numbers rise by one and are never used again, so a reader can ask
// for what came after the last that it saw.
type Occurrence struct {
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
	What     What      `json:"what"`
	ID       ID        `json:"id"`
	Name     string    `json:"name"`
	Owner    Owner     `json:"owner"`
	State    State     `json:"state,omitempty"`     // after it; empty: the run is gone
	Status   Status    `json:"status,omitempty"`    // of an end
	ExitCode *int      `json:"exit_code,omitempty"` // of an end
	Detail   string    `json:"detail,omitempty"`    // for people
}

// What names an occurrence: an Event of the state table, or one of those below.
type What string

// Occurrences that leave the state as it is.
const (
	WhatQueued  What = "queued"  // a new run waits for its turn
	WhatStarted What = "started" // the agent executes
	WhatEnded   What = "ended"   // with a record
	WhatLost    What = "lost"    // its supervisor died
	WhatAgain   What = "requeued"
	WhatBegun   What = "starting"
	WhatRemoved What = "removed"
	WhatRenamed What = "renamed"
	WhatUpdated What = "updated" // its limits or rules changed
	WhatPaused  What = "paused"
	WhatResumed What = "resumed"
	WhatStopped What = "stop-asked"
	WhatGivenUp What = "given-up" // its restart policy has no restarts left
	WhatDue     What = "due"      // its schedule's time has come
	WhatSkipped What = "skipped"  // its schedule's time came while the one before had not ended
)

// Whats lists every one, for filters and documents.
var Whats = []What{WhatQueued, WhatBegun, WhatStarted, WhatEnded, WhatLost, WhatAgain, WhatRemoved, WhatRenamed,
	WhatUpdated, WhatPaused, WhatResumed, WhatStopped, WhatGivenUp, WhatDue, WhatSkipped}
