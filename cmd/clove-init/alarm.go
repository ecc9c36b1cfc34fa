package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// bootTimeNS reads CLOCK_BOOTTIME, which includes the time that the host is suspended.
func bootTimeNS() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) // fails only for an unknown clock
	return now.Nano()
}

// alarm is a timer on CLOCK_BOOTTIME. Go's timers use CLOCK_MONOTONIC, which stops while
// the host is suspended.
type alarm struct {
	file   *os.File
	dueNS  int64 // 0: not set
	passed chan struct{}
}

// newAlarm makes an alarm that is not set. Its goroutine lives as long as the process.
func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("cannot make timer: %w", err)
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "timer"), passed: make(chan struct{}, 1)}
	go a.wait()
	return a, nil
}

func (a *alarm) wait() {
	var expirations [8]byte
	for {
		if _, err := a.file.Read(expirations[:]); err != nil {
			return
		}
		a.passed <- struct{}{}
	}
}

// set makes the alarm fire once, d from now; at once if d is not positive.
func (a *alarm) set(d time.Duration) {
	d = max(d, 1) // 0 would disarm it
	a.dueNS = bootTimeNS() + int64(d)
	when := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	// It fails only for a wrong descriptor or time; this file's are right.
	_ = descriptor.Use(a.file, func(fd int) error { return unix.TimerfdSettime(fd, 0, &when, nil) })
}

// left is the time until the alarm fires. It is undefined before set.
func (a *alarm) left() time.Duration { return time.Duration(a.dueNS - bootTimeNS()) }
