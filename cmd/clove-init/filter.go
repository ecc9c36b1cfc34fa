package main

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// filterOf is the agent's own filter as prctl(2) takes it; nil if there is none.
func filterOf(orders *initproto.Orders) *unix.SockFprog {
	if len(orders.Filter) == 0 {
		return nil
	}
	instructions := make([]unix.SockFilter, len(orders.Filter)/unix.SizeofSockFilter)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&instructions[0])), len(orders.Filter)), orders.Filter)
	return &unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
}

// loadFilter restricts this thread, which becomes the agent, and no other. It comes right
// before execve(2), because the filter may refuse every other call. The sandbox's filter
// refuses seccomp(2) and lets prctl(2) pass where there is a filter to load.
func (i *image) loadFilter() *initproto.ExecFailed {
	if i.filter == nil {
		return nil
	}
	_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(i.filter)))
	if errno != 0 {
		return startFailed("filter", errno)
	}
	return nil
}

// failureSender returns what sends a failure. If the agent has a filter of its own, that is
// another thread: the filter may refuse what a message needs. The thread is made now, before
// there are limits, and ends at execve(2) as Go's other threads do.
func failureSender(conn *initproto.Conn, orders *initproto.Orders) func(*initproto.ExecFailed) error {
	send := func(failure *initproto.ExecFailed) error {
		return conn.Send(initproto.Message{ExecFailed: failure})
	}
	if len(orders.Filter) == 0 {
		return send
	}
	ready, failures, sent := make(chan struct{}), make(chan *initproto.ExecFailed), make(chan error)
	go func() {
		runtime.LockOSThread()
		close(ready)
		sent <- send(<-failures)
	}()
	<-ready
	return func(failure *initproto.ExecFailed) error {
		failures <- failure
		return <-sent
	}
}
