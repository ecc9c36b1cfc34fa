package monitor

import (
	"fmt"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// seen is what a monitor knows of an end.
type seen struct {
	expired    bool // the monitor killed it, at its deadline
	status     unix.WaitStatus
	unknown    error // why there is no status; nil: there is
	oomKills   int64
	wallMS     int64
	memoryPeak *int64
}

// ending is the part of a record that says how the container ended and why.
type ending struct {
	status   agent.Status
	exitCode int
	signal   *string
	limit    *agent.LimitHit
	failure  *agent.Failure
}

// judge attributes an end in the order of a local run's: what clove did, what
// the kernel counted, what the process returned. One difference: a local run is
// ended at the first OOM kill, an OCI container goes on. So an OOM kill counts as the
// cause only if the first process was killed too, or returned 137 as shells do.
func judge(limits agent.Limits, s seen) ending {
	switch {
	case s.expired:
		v := s.byLimit(agent.StatusTimeout, agent.ExitTimeout, agent.ControlWallClock, limits.WallClock.Milliseconds())
		v.limit.Peak = &s.wallMS
		return v
	case s.unknown != nil:
		return ending{status: agent.StatusKilled, exitCode: agent.ExitKilled,
			failure: &agent.Failure{Step: "keeper", Message: s.unknown.Error(),
				Hint: "the engine knows the exit status"}}
	case s.oomKills > 0 && s.code() == agent.ExitKilled:
		v := s.byLimit(agent.StatusOOM, agent.ExitKilled, agent.ControlMemory, limits.MemoryBytes)
		v.limit.Peak = s.memoryPeak
		return v
	case s.status.Signaled():
		return ending{status: agent.StatusSignaled, exitCode: s.code(), signal: s.signal()}
	}
	return ending{status: agent.StatusExited, exitCode: s.code()}
}

// byLimit is an end for which a limit was the reason.
func (s seen) byLimit(status agent.Status, code int, name string, value int64) ending {
	return ending{status: status, exitCode: code, signal: s.signal(), limit: &agent.LimitHit{Name: name, Value: value}}
}

// code is the status as shells write it.
func (s seen) code() int {
	if s.status.Signaled() {
		return agent.ExitSignalBase + int(s.status.Signal())
	}
	return s.status.ExitStatus()
}

// signal is the name of the signal that ended the process, nil for none.
func (s seen) signal() *string {
	if s.unknown != nil || !s.status.Signaled() {
		return nil
	}
	name := unix.SignalName(s.status.Signal())
	if name == "" {
		name = fmt.Sprintf("SIG%d", s.status.Signal()) // a real-time signal
	}
	return &name
}
