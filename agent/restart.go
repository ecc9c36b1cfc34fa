package agent

import "time"

// Restart says what happens when a run that cloved looks after has ended.
type Restart struct {
	Policy RestartPolicy `json:"policy,omitempty"` // empty: RestartNever
	Max    int           `json:"max,omitempty"`    // restarts in a row before it is given up; 0: no maximum
}

// RestartPolicy is one of docker's words, except "unless-stopped": a policy never
// starts a run again that a person stopped.
type RestartPolicy string

// The restart policies.
const (
	RestartNever     RestartPolicy = "never"
	RestartOnFailure RestartPolicy = "on-failure" // it ended with another status than 0
	RestartAlways    RestartPolicy = "always"
)

// Restarts reports whether the policy ever starts a run again.
func (p RestartPolicy) Restarts() bool { return p != "" && p != RestartNever }

// RestartPolicies lists every policy.
var RestartPolicies = []RestartPolicy{RestartNever, RestartOnFailure, RestartAlways}

// Owner is the user that asked for a run, as the kernel reports a socket's peer.
// The zero value is root.
type Owner struct {
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
}

// QueueState is what cloved keeps of a run besides what it asks for: where it stands
// in the queue and between its starts. Of the marks, phase.go is the only writer.
type QueueState struct {
	NotBefore time.Time `json:"not_before,omitzero"`  // a restart's backoff, or a delay that was asked for
	Since     time.Time `json:"since,omitzero"`       // when it joined the queue
	Restarts  int       `json:"restarts,omitempty"`   // by policy, in a row
	Starts    int       `json:"starts,omitempty"`     // how often it was queued
	StopAsked bool      `json:"stop_asked,omitempty"` // mark: a person wanted its end, and neither policy nor schedule starts it again
	Stopped   *Stopped  `json:"stopped,omitempty"`    // which person, and when; its record says it too
	Cause     string    `json:"cause,omitempty"`      // id of the call from which its end follows, stored before that ends it; empty: none, or not known
	GivenUp   bool      `json:"given_up,omitempty"`   // mark: its policy has no restarts left
	Paused    bool      `json:"paused,omitempty"`     // frozen until a person resumes it
	Fresh     bool      `json:"fresh,omitempty"`      // the next start begins with a new layer
	Ready     time.Time `json:"ready,omitzero"`       // when it said so, since its last start
	Scheduled bool      `json:"scheduled,omitempty"`  // mark: it waits for the next time of its schedule
	Settled   time.Time `json:"settled,omitzero"`     // the schedule's times up to here were started or skipped
	// Next is when its schedule starts it next. cloved answers with it; it is
	// not stored.
	Next  time.Time `json:"next,omitzero"`
	Trace string    `json:"trace,omitempty"` // W3C traceparent of the call that asked for it, where cloved traces
}
