package main

import (
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// companion is the second stage's other thread, which has no filter. It does what the thread
// that becomes the agent may not do any more once its filter is on: setting limits, and
// sending messages. That thread only stores in stage what has happened, because it may not
// even wake another one up. Both end with execve(2).
type companion struct {
	conn   *initproto.Conn
	limits []limit
	begun  chan struct{} // closed: the filter is about to be loaded
	stage  atomic.Int32

	// Written before their stage is stored.
	listener int
	failure  *initproto.ExecFailed
	exit     func() // of the process, after a failure was sent
}

// The stages. image.executeFiltered says what the agent's thread does in each.
const (
	stageUnfiltered int32 = iota
	stageFiltered         // the agent's thread is under its filter
	stageTold             // so is its supervisor, and the limits are set
	stageFailed           // the agent's thread never executes
	stageOver             // the failure was sent
)

// newCompanion starts the thread now: under the agent's limits there may be none.
func newCompanion(conn *initproto.Conn, limits []limit) *companion {
	c := &companion{conn: conn, limits: limits, begun: make(chan struct{}), exit: func() { os.Exit(initproto.ExitStartFailed) }}
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(ready)
		<-c.begun
		c.follow()
	}()
	<-ready
	return c
}

// look is how often the companion looks at the stage. It is short: the agent waits.
const look = 10 * time.Microsecond

func (c *companion) follow() {
	for {
		switch c.stage.Load() {
		case stageFiltered:
			c.tell()
		case stageFailed:
			_ = c.conn.Send(initproto.Message{ExecFailed: c.failure}) // an error: PID 1 is gone, and this process with it
			c.stage.Store(stageOver)
			c.exit()
			return
		}
		pause := unix.NsecToTimespec(int64(look))
		_ = unix.Nanosleep(&pause, nil)
	}
}

// tell sets the limits and hands over the listener, in this order: the answer to the agent's
// thread comes through the listener. The filter came before the limits, because a listener
// is a descriptor, of which they may allow no more.
func (c *companion) tell() {
	filtered := &initproto.Filtered{}
	if c.listener != noListener {
		filtered.Listener = os.NewFile(uintptr(c.listener), "listener")
	}
	failure := setLimits(c.limits)
	if failure == nil {
		if err := c.conn.Send(initproto.Message{Filtered: filtered}); err != nil {
			failure = startFailed("filter", err)
		}
	}
	if failure != nil {
		c.failure = failure
		c.stage.Store(stageFailed)
	} else {
		// Not if the other thread has failed meanwhile.
		c.stage.CompareAndSwap(stageFiltered, stageTold)
	}
	if filtered.Listener != nil {
		filtered.Listener.Close() // last: without another copy of it, the other thread's wait ends here
	}
}

// failed has the failure sent, and returns after that. It is called by the agent's thread,
// which may not be able to wait in any other way.
func (c *companion) failed(failure *initproto.ExecFailed) {
	if c.stage.Load() < stageFailed {
		c.failure = failure
		c.stage.Store(stageFailed)
	}
	for c.stage.Load() != stageOver {
	}
}
