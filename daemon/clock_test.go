package daemon

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The watch on the clock waits for a jump only, and ends with cloved. That a jump wakes it is
// tested in the virtual machine, whose clock can be set.
func TestClockIsWatched(t *testing.T) {
	t.Parallel()
	clock, err := openClock()
	must(t, err)
	defer clock.Close()
	raw, err := clock.SyscallConn()
	must(t, err)
	var left unix.ItimerSpec
	must(t, raw.Control(func(fd uintptr) { err = unix.TimerfdGettime(int(fd), &left) }))
	must(t, err)
	if left.Value.Sec < int64((50*365*24*time.Hour)/time.Second) {
		t.Errorf("it ends in %d s", left.Value.Sec)
	}
	r := newRig(t, nil)
	alive, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); r.d.reconciler.watchClock(alive, r.d.clockSet) }()
	stop()
	select {
	case <-ended:
	case <-within(t).Done():
		t.Error("it goes on")
	}
}
