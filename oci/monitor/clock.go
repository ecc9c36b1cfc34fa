package monitor

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// bootTime is CLOCK_BOOTTIME. No process can set it, and a time namespace of the
// container does not change it for the monitor.
func bootTime() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, os.NewSyscallError("clock_gettime", err)
	}
	return time.Duration(now.Nano()), nil
}

// alarm fires once, at a moment of CLOCK_BOOTTIME.
type alarm struct {
	fired chan struct{} // closed when it did
	file  *os.File
}

// newAlarm makes one that is not set yet.
func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	a := &alarm{fired: make(chan struct{}), file: os.NewFile(uintptr(fd), "timerfd")}
	go a.wait()
	return a, nil
}

// set fires at once where the moment has passed.
func (a *alarm) set(at time.Duration) error {
	// Zero would disarm it.
	value := unix.ItimerSpec{Value: unix.NsecToTimespec(max(at.Nanoseconds(), 1))}
	err := unix.TimerfdSettime(int(a.file.Fd()), unix.TFD_TIMER_ABSTIME, &value, nil)
	if err != nil {
		return os.NewSyscallError("timerfd_settime", err)
	}
	// Fd made it a blocking one, which the poller would not see.
	return os.NewSyscallError("fcntl", unix.SetNonblock(int(a.file.Fd()), true))
}

func (a *alarm) wait() {
	var count [8]byte // timerfd_create(2)
	if _, err := a.file.Read(count[:]); err == nil {
		close(a.fired)
	}
}
