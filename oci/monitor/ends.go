package monitor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ends is what the kernel's accounting reported of one process, thread by thread,
// until all of them had ended. status is known only if it has one reading.
//
// The status of a process is its last thread's, or, before Linux 6.0, its first one's,
// unless one thread ended all of them (exit_group(2)). If first and last agree, all of
// these are the same. One case cannot be distinguished: two threads end by themselves
// at the moment at which a third ends the process with another status.
type ends struct {
	first, last *unix.WaitStatus // of the thread that has the process's number, and of the one after which there was none
	lost        bool             // the kernel had no room in the queue for a report
}

// threadEnd is how one thread ended.
type threadEnd struct {
	thread, process uint32
	status          unix.WaitStatus
	final           bool // it was the last one of its process
}

// take adds the end of a thread of the process pid. A thread that executes another
// program takes over the first one's number, so the newest report of the first thread
// counts. Once all have ended the number may be another process's: only the first
// thread's report may still come, and it is not marked as final.
func (e *ends) take(pid uint32, t threadEnd) {
	if t.process != pid || e.last != nil && t.final {
		return
	}
	if t.thread == pid {
		e.first = &t.status
	}
	if t.final {
		e.last = &t.status
	}
}

// Why a status is not known. The record has these texts.
var (
	errEndLost    = errors.New("the kernel's report of its end was lost: the queue was full")
	errEndMissing = errors.New("the kernel did not report how it ended")
	errEndTwice   = errors.New("its threads ended in different ways, and this kernel does not report which status is the process's")
)

func (e *ends) status() (unix.WaitStatus, error) {
	switch {
	case e.lost:
		return 0, errEndLost
	case e.first == nil || e.last == nil:
		return 0, errEndMissing
	case *e.first != *e.last:
		return 0, errEndTwice
	}
	return *e.last, nil
}
