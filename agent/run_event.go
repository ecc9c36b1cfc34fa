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
	Sum      *Sum      `json:"sum,omitempty"`       // of an end
}

// Sum is what one end adds to an installation's counters. It stands with the
// occurrence because the record of a run with --rm goes when the run does. A
// figure that this host cannot supply counts as 0.
type Sum struct {
	Limit       string `json:"limit,omitempty"` // LimitHit.Name, where a limit ended the run
	PidsMax     int64  `json:"pids_max,omitempty"`
	CPUMS       int64  `json:"cpu_ms,omitempty"`
	NetRxBytes  int64  `json:"net_rx_bytes,omitempty"`
	NetTxBytes  int64  `json:"net_tx_bytes,omitempty"`
	Connections int64  `json:"connections,omitempty"` // through the gate
	Refused     int64  `json:"refused,omitempty"`     // by the gate: connections, flows and names
}

// SumOf takes out of a record what is added up.
func SumOf(r Record) *Sum {
	known := func(figure *int64) int64 {
		if figure == nil {
			return 0
		}
		return *figure
	}
	s := &Sum{PidsMax: known(r.Events.PidsMax), CPUMS: known(r.Usage.CPUMS), NetRxBytes: known(r.Usage.NetRxBytes), NetTxBytes: known(r.Usage.NetTxBytes)}
	if r.Limit != nil {
		s.Limit = r.Limit.Name
	}
	if r.Network != nil {
		s.Connections, s.Refused = r.Network.Connections, r.Network.Refused
	}
	return s
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
	// WhatContainer tells of an engine's container, which no counter of agents counts.
	WhatContainer What = "container-ended"
)
