// Package boottime reads CLOCK_BOOTTIME and waits for its moments. No process can set that
// clock, and it counts the time that the host is suspended; Go's timers use
// CLOCK_MONOTONIC, which stops meanwhile.
//
// It refuses dates: a moment is a number of nanoseconds since the boot.
package boottime

import (
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// NowNS is the time since the boot in nanoseconds.
func NowNS() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // fails only for an unknown clock
	return now.Nano()
}

// Alarm fires at one moment, which can be moved.
type Alarm struct {
	DueNS int64         // since the boot; 0: not set
	Fired chan struct{} // one element for each moment that has come
	file  *os.File
}

// New makes an alarm that is not set. The caller closes it.
func New() (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	a := &Alarm{file: os.NewFile(uintptr(fd), "timer"), Fired: make(chan struct{}, 1)}
	go a.wait()
	return a, nil
}

// wait passes each expiration on. It ends with Close, which ends the read.
func (a *Alarm) wait() {
	var expirations [8]byte // timerfd_create(2)
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return
		}
		a.Fired <- struct{}{}
	}
}

// Set makes the alarm fire at a moment; at once if it has passed. A moment that has fired
// already may still be in Fired.
func (a *Alarm) Set(dueNS int64) {
	a.DueNS = max(dueNS, 1) // 0 would disarm it
	when := unix.ItimerSpec{Value: unix.NsecToTimespec(a.DueNS)}
	// It fails only for a wrong descriptor or time; these are right.
	_ = descriptor.Use(a.file, func(fd int) error { return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &when, nil) })
}

// SetAfter makes the alarm fire d from now; at once if d is not positive.
func (a *Alarm) SetAfter(d time.Duration) {
	now := NowNS()
	a.Set(now + min(int64(d), math.MaxInt64-now))
}

// Close disarms the alarm.
func (a *Alarm) Close() error { return a.file.Close() }

// Left is the time until the alarm fires. It is undefined before Set.
func (a *Alarm) Left() time.Duration { return time.Duration(a.DueNS - NowNS()) }
