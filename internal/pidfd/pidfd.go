// Package pidfd refers to processes by descriptors, which always mean the same process,
// while a pid may be reused (pidfd_open(2)). It refuses to reap: only the parent may.
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

// Process is a process that lives or has lived. The caller that opened it closes it.
type Process struct {
	file *os.File
	fd   int
}

// Open opens the process that has the pid now. Gone reports whether an error means that
// there is none.
func Open(pid int) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK) // for Wait, which takes no thread
	if err != nil {
		return nil, os.NewSyscallError("pidfd_open", err)
	}
	return &Process{os.NewFile(uintptr(fd), "process "+strconv.Itoa(pid)), fd}, nil
}

// OpenStarted is Open for the process with this start time, see StartTime. If that process
// has ended, Gone is true of the error, even if another one has the pid now.
func OpenStarted(pid int, start uint64) (*Process, error) {
	p, err := Open(pid)
	if err != nil {
		return nil, err
	}
	// Checked after the open: if the pid had been reused before it, the start time would differ.
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

// Close closes the descriptor.
func (p *Process) Close() error { return p.file.Close() }

// Signal is kill(2) for the process; if it has ended, this is no error.
func (p *Process) Signal(s unix.Signal) error {
	if err := unix.PidfdSendSignal(p.fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("pidfd_send_signal", err)
	}
	return nil
}

// Ended reports whether the process has ended, reaped or not.
func (p *Process) Ended() bool { return readable(p.fd) }

// Wait waits until the process has ended, or returns false when ctx ends. Only one
// goroutine may wait at a time.
func (p *Process) Wait(ctx context.Context) bool {
	// Closed behind the deadline, which could otherwise be set after the reset below, and
	// end the next Wait at once.
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Unix(1, 0)); close(done) })
	defer func() {
		if !stop() { // the deadline is set; reset it for the next Wait
			<-done
			_ = p.file.SetReadDeadline(time.Time{})
		}
	}()
	raw, err := p.file.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool { return readable(int(fd)) })
	}
	return err == nil
}

// WaitFor is Wait with a time limit.
func (p *Process) WaitFor(patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return p.Wait(ctx)
}

// readable reports that the process of fd has ended: a pidfd is readable then
// (pidfd_open(2)), also of a process that is not a child.
func readable(fd int) bool {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		if err != unix.EINTR {
			return n > 0 || err != nil
		}
	}
}

// Gone reports whether err, from opening a pid, means that no process has that pid any
// more. EINVAL, and ENOENT on newer kernels, mean that a thread has the number. Threads and
// processes share one number space, so then no process has it.
func Gone(err error) bool {
	return errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT)
}

// StartTime is the start time of a process in clock ticks since boot (field 22). With the
// pid it names one process for good, also in a file.
func StartTime(pid int) (uint64, error) {
	fields, err := Stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[22-3], 10, 64)
}

// Stat returns the fields of proc_pid_stat(5) from the third on, the state. The number may
// also be a thread's.
func Stat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	_, fields, err := ParseStat(string(text))
	return fields, err
}

// ParseStat splits a line of proc_pid_stat(5) into the name, which may have blanks and
// brackets in it, and the fields behind the name: the first is field 3, the state.
func ParseStat(text string) (name string, fields []string, err error) {
	// The last bracket, because the process chooses its name: "x) R 1" is one.
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if end >= open && open >= 0 {
		name, fields = text[open+1:end], strings.Fields(text[end+1:])
	}
	if len(fields) < 52-2 { // since Linux 3.5
		return "", nil, fmt.Errorf("cannot parse %q, of a process's stat", text)
	}
	return name, fields, nil
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
