package agent

import (
	"slices"
	"time"
)

// The Error.Step of a record of a run that another's agent started: it ended with its parent, or
// was not started because that does not live; or its deadline came, also before it had started.
const (
	StepParent   = "parent"
	StepDeadline = "deadline"
)

// ParentName is the name of the run that started this one, as it was then; empty: a person did.
func (r Run) ParentName() string {
	if len(r.Above) == 0 {
		return string(r.Parent)
	}
	return r.Above[0].Name
}

// StartedBy says of a run that another's agent started which one that was, for events; empty: a person did.
func (r Run) StartedBy() string {
	if r.Parent == "" {
		return ""
	}
	return "by the agent of " + r.ParentName()
}

// Descends reports whether the run was started by the agent of that one, or by one below it.
func (r Run) Descends(from ID) bool {
	return r.Parent == from || slices.ContainsFunc(r.Above, func(a Ancestor) bool { return a.ID == from })
}

// Overdue reports whether the deadline of the run has come at a time.
func (r Run) Overdue(at time.Time) bool { return !r.Deadline.IsZero() && !at.Before(r.Deadline) }

// Lives reports whether the run starts or runs.
func (r Run) Lives() bool { return r.State == StateStarting || r.State == StateRunning }

// NotStarted reports whether the agent never executed because its start failed, or its deadline came first.
func (r Record) NotStarted() bool {
	return r.Status == StatusStartFailed || r.Status == StatusTimeout && r.Limit == nil && r.EndedWith() != ""
}

// EndOf is the id of the call, or of the parent, from whose end this run's end follows; empty: of none, or it is not
// known. A call that ended the run is one that asked for that, or that spent a budget; of an end by another limit no
// call is the cause, although one may have been made before.
func (r Run) EndOf() string {
	record := r.Record
	switch {
	case record == nil:
		return ""
	case record.Status == StatusKilled && record.Error != nil && record.Error.Step == StepParent:
		return string(r.Parent)
	case record.Status == StatusBudget, record.Limit == nil && (record.Status == StatusPolicyKill || record.Status == StatusKilled || record.Status == StatusSignaled || r.Stopped() != nil):
		return r.Queue.Cause
	}
	return ""
}

// Idled says of a run that was ended because it was idle for how long it was; empty: it ended otherwise.
func (r Record) Idled() string {
	if r.Status != StatusIdle || r.Error == nil {
		return ""
	}
	return r.Error.Message
}

// EndedWith says of a run that ended because of the run that started it what that did; empty: it ended
// otherwise.
func (r Record) EndedWith() string {
	if r.Error == nil || r.Error.Step != StepParent && r.Error.Step != StepDeadline {
		return ""
	}
	return r.Error.Message
}
