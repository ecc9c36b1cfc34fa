package monitor

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ends is what the kernel's accounting said of one process, thread by thread,
// until all of them had ended. It knows the status only where there are no two
// readings, and says so otherwise.
//
// A process ends with what its last thread said, or, before Linux 6.0, with what
// its first one said, unless one thread ended all of them. Where first and last
// agree all of these are the same. One reading is left that cannot be told apart:
// two threads that end by themselves in the moment in which a third ends the
// process with another status.
type ends struct {
	first, last *unix.WaitStatus // of the thread that has the process's number, and of the one after which there was none
	lost        bool             // the kernel had no room for something that it said
}

// threadEnd is how one thread ended.
type threadEnd struct {
	thread, process uint32
	status          unix.WaitStatus
	final           bool // it was the last one of its process
}

// take hears of a thread of the process pid. A thread that executes another
// program takes over the first one's number, so of the first ones the newest
// counts. Once all have ended the number may be another process's: what is still
// to come is the first thread's word, which is not the last.
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

// Why a status is not known, for the record.
var (
	errEndLost    = errors.New("the kernel had no room to tell how it ended")
	errEndMissing = errors.New("the kernel did not tell how it ended")
	errEndTwice   = errors.New("its threads ended in different ways, and this kernel does not tell which of them was the process's")
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
