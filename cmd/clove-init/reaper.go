package main

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ending is how and when (CLOCK_BOOTTIME) a process ended.
type ending struct {
	status     unix.WaitStatus
	bootTimeNS int64
}

// reaper buries every child of PID 1: the agent's first process and each
// orphan of the sandbox. It has a thread to itself that waits in the kernel, so
// that a flood of zombies delays nothing else and nothing else delays it.
type reaper struct {
	agent    chan ending   // gets one value
	none     chan struct{} // closed: no child is left, none can come
	killing  atomic.Bool   // set by the sandbox before its first KILL
	leftover atomic.Int64  // ended by KILL since then, the agent aside
}

// reap starts a reaper for PID 1's children, of whom agentPID is the first. It
// ends when none is left.
func reap(agentPID int) *reaper {
	r := &reaper{agent: make(chan ending, 1), none: make(chan struct{})}
	go r.run(agentPID)
	return r
}

func (r *reaper) run(agentPID int) {
	defer close(r.none)
	alive := true // its pid may return to another process after its end
	for {
		var status unix.WaitStatus
		// WALL: a child that ends with another signal than CHLD counts as well.
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil: // ECHILD
			return
		case alive && pid == agentPID:
			alive = false
			r.agent <- ending{status: status, bootTimeNS: bootTimeNS()}
		case r.killing.Load() && status.Signaled() && status.Signal() == unix.SIGKILL:
			r.leftover.Add(1)
		}
	}
}
