package daemon

import (
	"context"
	"errors"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// watchClock calls set whenever the wall clock jumps: it was set, or the host slept. A timer
// counts seconds of CLOCK_MONOTONIC and would notice too late.
func (r *reconciler) watchClock(ctx context.Context, set func()) {
	clock, err := openClock()
	if err != nil {
		r.log.Warn("schedules, grants and budgets do not notice at once when the clock is set", "error", err)
		return
	}
	defer context.AfterFunc(ctx, func() { clock.Close() })()
	for ctx.Err() == nil {
		// timerfd_create(2): the read fails with ECANCELED when the clock was set.
		_, err := clock.Read(make([]byte, 8))
		if errors.Is(err, unix.ECANCELED) && armClock(clock) == nil {
			r.log.Info("the clock was set")
			set()
			continue
		}
		clock.Close()
		return
	}
}

// openClock makes a timer on the wall clock. It is non-blocking, so that Go's poller waits
// for it and closing it ends a read.
func openClock() (*os.File, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	clock := os.NewFile(uintptr(fd), "clock")
	if err := armClock(clock); err != nil {
		return nil, errors.Join(err, clock.Close())
	}
	return clock, nil
}

// armClock sets the timer to a time that never comes, in the year 2242: the kernel counts
// nanoseconds in 63 bits, which end in 2262. Each arming reports one change of the clock.
func armClock(clock *os.File) error {
	never := unix.ItimerSpec{Value: unix.Timespec{Sec: math.MaxInt32 * 4}}
	// Not File.Fd, which makes the descriptor blocking.
	raw, err := clock.SyscallConn()
	if err != nil {
		return err
	}
	var armed error
	err = raw.Control(func(fd uintptr) {
		armed = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &never, nil)
	})
	return errors.Join(err, armed)
}
