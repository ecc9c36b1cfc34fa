package main

import (
	"sync/atomic"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/boottime"
)

// ending says how and when (CLOCK_BOOTTIME) a process ended.
type ending struct {
	status     unix.WaitStatus
	bootTimeNS int64
}

// reaper reaps every child of PID 1: the agent's first process, and every orphan of the
// sandbox. It blocks in wait4(2) on a thread of its own, so a flood of zombies delays
// nothing else, and nothing delays it.
type reaper struct {
	agent    chan ending   // receives one value
	none     chan struct{} // closed when no child is left; new ones cannot appear then
	killing  atomic.Bool   // set by the sandbox before its first SIGKILL
	leftover atomic.Int64  // processes ended by SIGKILL since then, without the agent
}

// reap starts a reaper for PID 1's children. Its goroutine ends when no child is left.
func reap(agentPID int) *reaper {
	r := &reaper{agent: make(chan ending, 1), none: make(chan struct{})}
	go r.run(agentPID)
	return r
}

func (r *reaper) run(agentPID int) {
	defer close(r.none)
	alive := true // the agent's pid may be reused after its end
	for {
		var status unix.WaitStatus
		// WALL includes children whose exit signal is not SIGCHLD (clone(2)).
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil: // ECHILD
			return
		// A child that calls ptrace(2) with PTRACE_TRACEME makes PID 1 its tracer, whose wait
		// returns each stop, too. PID 1 lets it stand still: SIGKILL ends it all the same.
		case status.Stopped():
		case alive && pid == agentPID:
			alive = false
			r.agent <- ending{status: status, bootTimeNS: boottime.NowNS()}
		// A process that SIGKILL ends from here on had outlived the agent or the grace
		// period; the record counts these.
		case r.killing.Load() && status.Signaled() && status.Signal() == unix.SIGKILL:
			r.leftover.Add(1)
		}
	}
}
