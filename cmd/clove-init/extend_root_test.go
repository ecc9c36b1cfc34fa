//go:build root

package main

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/testhost"
)

// extend requests another wall clock limit and returns the answer.
func (b *box) extend(wallClock time.Duration) bool {
	b.t.Helper()
	b.send(initproto.Message{Extend: &initproto.Extend{WallClock: wallClock}})
	check(b.t, b.conn.SetReceiveDeadline(time.Now().Add(testhost.Patience(patience))))
	m, err := b.conn.Receive()
	check(b.t, err)
	if m.Extended == nil {
		b.t.Fatalf("the answer is %+v", m)
	}
	return m.Extended.Accepted
}

// endSoon sets a clock that expires in a moment. If it has expired when PID 1 gets the
// request, the request is refused, so this may take more than one try.
func (b *box) endSoon(started *initproto.Started) {
	b.t.Helper()
	for until := time.Now().Add(testhost.Patience(patience)); ; {
		passed := time.Duration(boottime.NowNS() - started.BootTimeNS)
		if b.extend(passed + 200*time.Millisecond) {
			return
		}
		if time.Now().After(until) {
			b.t.Fatal("every clock was refused")
		}
	}
}

// TestExtend: TestDeadline is the control. The first clock would have ended the agent; the
// second one does.
func TestExtend(t *testing.T) {
	orders := shell(`exec sleep 1000`)
	orders.WallClock = 2 * time.Second
	b := start(t, orders)
	b.started()
	const second = 3 * time.Second
	if !b.extend(time.Hour) || !b.extend(second) {
		t.Fatal("a longer clock was refused")
	}
	if got := b.exited(); got.Cause != initproto.CauseDeadline || got.Signal != unix.SIGTERM || got.WallNS < int64(second) {
		t.Errorf("%+v", got)
	}
}

func TestExtendOfARunWithoutAClock(t *testing.T) {
	b := start(t, shell(`exec sleep 1000`))
	b.endSoon(b.started())
	if got := b.exited(); got.Cause != initproto.CauseDeadline {
		t.Errorf("%+v", got)
	}
}

// TestExtendTakesTheClockAway: TestDeadline is the control.
func TestExtendTakesTheClockAway(t *testing.T) {
	orders := shell(`exec sleep 1000`)
	orders.WallClock = time.Second
	b := start(t, orders)
	b.started()
	if !b.extend(0) {
		t.Fatal("refused")
	}
	check(t, b.conn.SetReceiveDeadline(time.Now().Add(orders.WallClock+500*time.Millisecond)))
	if m, err := b.conn.Receive(); err == nil {
		t.Fatalf("it did not outlive its first clock: %+v", m)
	}
	b.send(initproto.Message{Stop: &initproto.Stop{}})
	if got := b.exited(); got.Cause != initproto.CauseStop {
		t.Errorf("%+v", got)
	}
}

func TestExtendComesTooLate(t *testing.T) {
	b := start(t, shell(`trap '' TERM; echo ready; while :; do sleep 1000; done`))
	b.started()
	b.expect("ready")
	if b.extend(time.Nanosecond) || b.extend(-time.Hour) {
		t.Error("a clock that is over was accepted")
	}
	b.send(initproto.Message{Stop: &initproto.Stop{Grace: 500 * time.Millisecond}})
	if b.extend(time.Hour) {
		t.Error("an agent that is being ended got more time")
	}
	if got := b.exited(); got.Cause != initproto.CauseStop {
		t.Errorf("%+v", got)
	}
}
