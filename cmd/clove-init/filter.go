package main

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// programOf is a filter of the orders as seccomp(2) takes it; nil if there is none.
func programOf(filter []byte) *unix.SockFprog {
	if len(filter) == 0 {
		return nil
	}
	instructions := make([]unix.SockFilter, len(filter)/unix.SizeofSockFilter)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&instructions[0])), len(filter)), filter)
	return &unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
}

// restrict loads PID 1's own filter on all of its threads; every later one inherits it. PID 1
// starts no process any more: the second stage is there already, without a filter.
func restrict(filter []byte) error {
	program := programOf(filter)
	if program == nil {
		return nil
	}
	thread, errno := loadFilter(program, unix.SECCOMP_FILTER_FLAG_TSYNC)
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d cannot take it", thread)
	}
	return nil
}

// loadFilter returns what the flags make of it: a listener, or the thread that failed.
func loadFilter(program *unix.SockFprog, flags uintptr) (uintptr, unix.Errno) {
	result, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(program)))
	return result, errno
}

// filters are the agent's own, in their two forms.
type filters struct {
	plain, reporting *unix.SockFprog
}

func filtersOf(orders *initproto.Orders) filters {
	return filters{programOf(orders.Filter), programOf(orders.Reporting)}
}

// noListener is the result of load without one.
const noListener = -1

// load restricts this thread, which becomes the agent, and no other. Where there can be no
// listener (a kernel before 5.0; one is there already, around all of clove), the filter
// refuses by itself, and the supervisor sees that there is none.
func (f filters) load() (listener int, errno unix.Errno) {
	if f.reporting != nil {
		for _, flags := range listening {
			fd, errno := loadFilter(f.reporting, flags)
			if errno == 0 {
				return int(fd), 0
			}
		}
	}
	if _, errno = loadFilter(f.plain, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW); errno != 0 {
		_, errno = loadFilter(f.plain, 0)
	}
	return noListener, errno
}

// listening are the flags of a filter with a listener, for new kernels and for older ones. A
// call that the supervisor has received is then left by a signal that kills, and by no other
// (5.19). SPEC_ALLOW is as in runc: before 5.16 a filter made its processes slower, by a
// mitigation of processor faults that they may ask for themselves.
var listening = []uintptr{
	unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
	unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW,
}
