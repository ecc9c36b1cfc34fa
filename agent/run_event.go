package agent

import "time"

// RunEvent is one event in a run's life, as the store keeps it. Sequence numbers rise by
// one and are never reused, so a reader can ask for everything after the last event that it
// has seen.
type RunEvent struct {
	Sequence uint64       `json:"sequence"`
	Time     time.Time    `json:"time" col:"WHEN,age"`
	Kind     RunEventKind `json:"what" col:"WHAT"`
	ID       ID           `json:"id"`
	Name     string       `json:"name"`
	Owner    Owner        `json:"owner"`
	Parent   ID           `json:"parent,omitempty"`              // the run whose agent started it
	State    State        `json:"state,omitempty"`               // after the event; empty: the run was removed
	Status   Status       `json:"status,omitempty"`              // of an end
	ExitCode *int         `json:"exit_code,omitempty"`           // of an end
	Detail   string       `json:"detail,omitempty" col:"DETAIL"` // for people
	Sum      *Sum         `json:"sum,omitempty"`                 // of an end
	// Causation is the id of the call that this follows from, Correlation the id that is the
	// same in all that follows from one call, and in its audit record. Only events of grants,
	// budgets, refusals and models have them, and the request and the end that follow from a
	// call. Of an end with the run that started it, Causation is the id of that run, whose own
	// event of its end says more; of the first event of a run that an agent started, too.
	Causation   string `json:"causation,omitempty"`
	Correlation string `json:"correlation,omitempty"`
}

// Sum is what one end adds to the installation's counters. It is stored in the event
// because the record of a run with --rm is deleted with the run. A figure that this host
// cannot supply counts as 0.
type Sum struct {
	Limit       string `json:"limit,omitempty"` // LimitHit.Name, where a limit ended the run
	PidsMax     int64  `json:"pids_max,omitempty"`
	CPUMS       int64  `json:"cpu_ms,omitempty"`
	NetRxBytes  int64  `json:"net_rx_bytes,omitempty"`
	NetTxBytes  int64  `json:"net_tx_bytes,omitempty"`
	Connections int64  `json:"connections,omitempty"` // through the gate
	Refused     int64  `json:"refused,omitempty"`     // by the gate: connections, flows and names
}

// SumOf takes the counted figures from a record.
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

// RunEventKind is an Event of the state table, or one of the kinds below.
type RunEventKind string

// Kinds of run events. Most of them do not change the state.
const (
	RunQueued        RunEventKind = "queued"  // a new run waits in the queue
	RunStarted       RunEventKind = "started" // the agent executes
	RunEnded         RunEventKind = "ended"   // with a record
	RunLost          RunEventKind = "lost"    // its supervisor died without a record
	RunRequeued      RunEventKind = "requeued"
	RunStarting      RunEventKind = "starting"
	RunRemoved       RunEventKind = "removed"
	RunRenamed       RunEventKind = "renamed"
	RunUpdated       RunEventKind = "updated" // its limits or rules changed
	RunPaused        RunEventKind = "paused"
	RunResumed       RunEventKind = "resumed"
	RunStopRequested RunEventKind = "stop-asked"
	RunGivenUp       RunEventKind = "given-up" // its restart policy has no restarts left
	RunDue           RunEventKind = "due"      // the time of its schedule has come
	RunSkipped       RunEventKind = "skipped"  // the time of its schedule came while the previous time still ran
	RunReady         RunEventKind = "ready"    // the agent said so, or the command of its Spec.Ready did
	// RunShadowed comes with an end: what the run's shadow policy would have refused.
	RunShadowed RunEventKind = "shadowed"
	// ContainerEnded reports the end of an OCI container. The counters of agents do not include it.
	ContainerEnded RunEventKind = "container-ended"

	// Decisions about a run's grants and budgets. Detail names the grant or budget.
	RunGrantGiven   RunEventKind = "grant-given"
	RunGrantRevoked RunEventKind = "grant-revoked"
	RunBudgetWarned RunEventKind = "budget-warned" // a budget reached its mark
	RunBudgetEnded  RunEventKind = "budget-ended"  // nothing is left of one
	RunBudgetPaused RunEventKind = "budget-paused" // the same, and the agent is frozen until there is more
	RunRefused      RunEventKind = "refused"       // a call of the agent
	RunSpawned      RunEventKind = "spawned"       // its agent started another; Detail is the name of that run
	RunDenied       RunEventKind = "denied"        // something that the sandbox refused: see Record.Denials
	RunModelCalled  RunEventKind = "model-called"  // a call of a model has ended
	RunToolCalled   RunEventKind = "tool-called"   // a call of a tool has ended
	RunAsked        RunEventKind = "asked"         // people are asked, and the run waits; Detail is the question
	RunAnswered     RunEventKind = "answered"      // such a question waits no more; Detail begins with its state
)
