// Package pidfd holds processes by descriptors: a number may come to mean another
// process, its descriptor does not (pidfd_open(2)).
package pidfd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one that lives or lived. It is closed by who opened it.
type Process struct {
	file *os.File
	fd   int
}

// Open holds the process that has the number now. Gone tells of an error whether
// that is none.
func Open(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK) // for Wait, which takes no thread
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	return &Process{os.NewFile(uintptr(fd), "process "+strconv.Itoa(pid)), fd}, nil
}

// OpenStarted is Open for the process that began at start, as StartTime tells it.
// Gone is true of the error where it has ended, whoever has its number now.
func OpenStarted(pid int, start uint64) (*Process, error) {
	p, err := Open(pid)
	if err != nil {
		return nil, err
	}
	// Looked at behind the opening: were the number another's by now, its time would be, too.
	began, err := StartTime(pid)
	if err == nil && began != start {
		err = fmt.Errorf("process %d is another one, it began at %d, not at %d: %w", pid, began, start, unix.ESRCH)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// FD is the descriptor, open until Close.
func (p *Process) FD() int { return p.fd }

// Close lets go of the process.
func (p *Process) Close() error { return p.file.Close() }

// Signal is kill(2) of the process; one that has ended is no error.
func (p *Process) Signal(s unix.Signal) error {
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	return nil
}

// Ended tells whether the process has, buried or not.
func (p *Process) Ended() bool { return readable(p.fd) }

// Wait waits until the process has ended, or else ctx: false then. One at a time
// waits.
func (p *Process) Wait(ctx context.Context) bool {
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Unix(1, 0)); close(told) })
	defer func() {
		if !stop() { // the next wait is to have its own time
			<-told
			_ = p.file.SetReadDeadline(time.Time{})
		}
	}()
	raw, err := p.file.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool { return readable(int(fd)) })
	}
	return err == nil
}

// WaitFor is Wait for some time at most.
func (p *Process) WaitFor(patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.Wait(ctx)
}

// readable is true of a process that has ended.
func readable(fd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if err != unix.EINTR {
			return n > 0 || err != nil
		}
	}
}

// Gone tells whether err, of an opening of a number that once was a process's,
// says that no process has it any more. A thread has it then where the kernel says
// EINVAL, or ENOENT, as newer ones do: both take their numbers out of the same
// supply, and no number is a thread's and another process's.
func Gone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT)
}

// StartTime is when a process began, in clock ticks since boot.
func StartTime(pid int) (uint64, error) {
	fields, err := Stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[22-3], 10, 64)
}

// Stat is proc_pid_stat(5) from the third field on, the state: the second may have
// blanks and brackets in it.
func Stat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 52-2 { // since Linux 3.5
		return nil, fmt.Errorf("cannot parse %q, of a process's stat", text)
	}
	return fields, nil
}

// Status is proc_pid_status(5): each line's text by its name.
func Status(pid int) (map[string]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, err
	}
	status := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found {
			status[key] = strings.TrimSpace(value)
		}
	}
	return status, nil
}
