package api

import (
	"encoding/json"
	"time"

	"clove.run/clove/agent"
)

// MethodCancel cancels a request of the same connection. It is served by whatever reads the
// connection: cloved, and an agent's gate, which knows no other row of users' methods.
const MethodCancel = "request.cancel"

// Nothing is the parameters or the result of a method that has none.
type Nothing struct{}

// InfoResult is what a cloved says of itself.
type InfoResult struct {
	Version  string              `json:"version"` // of the program
	API      int                 `json:"api"`     // of the contract
	PID      int                 `json:"pid"`
	Started  time.Time           `json:"started"`
	Root     string              `json:"root"`
	RunDir   string              `json:"run_dir"`
	Draining bool                `json:"draining"`
	Runs     map[agent.State]int `json:"runs"` // the caller's; of root all
}

// SummaryResult is what there is of all that clove counts: for root of everybody, for others of their own.
type SummaryResult struct {
	InfoResult
	Events uint64 `json:"events"` // number of the newest event
	Counts
}

// Counts are numbers of what kernel.db has.
type Counts struct {
	Mailboxes   int       `json:"mailboxes"`
	Messages    int       `json:"messages"` // in them
	DeadLetters int       `json:"dead_letters"`
	Queues      int       `json:"queues"` // of jobs
	Jobs        JobCounts `json:"jobs"`   // in them
	Names       int       `json:"names"`
	Blobs       int       `json:"blobs"`
	BlobBytes   int64     `json:"blob_bytes"` // of them, and of uploads at their whole size
	Grants      int       `json:"grants"`
	Budgets     int       `json:"budgets"`   // accounts in which something is counted or limited
	Spent       int       `json:"spent"`     // of these with a limit of which nothing is left
	Approvals   int       `json:"approvals"` // questions that wait for people
}

// JobCounts are numbers of jobs by their state.
type JobCounts struct {
	Ready   int `json:"ready"`
	Delayed int `json:"delayed"`
	Held    int `json:"held"`
	Dead    int `json:"dead"`
	Done    int `json:"done"` // the last ones of each queue
}

// ByState are the numbers by the words of Job.State.
func (n JobCounts) ByState() map[string]int {
	return map[string]int{JobReady: n.Ready, JobDelayed: n.Delayed, JobHeld: n.Held, JobDead: n.Dead, JobDone: n.Done}
}

// Plus is the sum of two.
func (n JobCounts) Plus(m JobCounts) JobCounts {
	return JobCounts{n.Ready + m.Ready, n.Delayed + m.Delayed, n.Held + m.Held, n.Dead + m.Dead, n.Done + m.Done}
}

// DrainParams turns the drain on or off.
type DrainParams struct {
	On bool `json:"on"`
}

// PanicParams ends all agents, or lets runs start again.
type PanicParams struct {
	Reason string `json:"reason,omitempty"`
	Clear  bool   `json:"clear,omitempty"`
}

// PanicResult names the runs that lived.
type PanicResult struct {
	Ended []string `json:"ended"`
}

// BackupParams names the file that the copy of kernel.db is written to.
type BackupParams struct {
	File string `json:"file"` // absolute; it must not exist
}

// CheckResult is what is wrong with kernel.db, in words; empty if it is sound.
type CheckResult struct {
	Problems []string `json:"problems"`
}

// GuardParams ask for network rules in a container that an engine made.
type GuardParams struct {
	Guard agent.Guard `json:"guard"`
}

// ContainerParams is how a container ended that an engine ran with clove-oci.
type ContainerParams struct {
	Container agent.Container `json:"container"`
	Record    agent.Record    `json:"record"` // with the engine's id as its own
}

// CancelParams names a request that is being answered.
type CancelParams struct {
	ID json.RawMessage `json:"id"` // as it was sent: a number or a string
}
