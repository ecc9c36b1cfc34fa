//go:build root

package integration

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// lifeline is a FIFO that a whole process tree has open: its end of file is the moment at
// which the last process ends, and bytes in it show that a process is alive.
type lifeline struct {
	t    *testing.T
	dir  string
	file *os.File
}

// lifelineInside is the FIFO's path inside; holdLifeline opens it in a shell as descriptor 9,
// which children inherit.
const (
	lifelineInside = "/lifeline/fifo"
	holdLifeline   = "exec 9>" + lifelineInside + "; "
)

func newLifeline(t *testing.T) *lifeline {
	t.Helper()
	dir, err := os.MkdirTemp("", "clove-life") // in a directory that every user may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "fifo")
	if err := errors.Join(unix.Mkfifo(path, 0o666), os.Chmod(path, 0o666), os.Chmod(dir, 0o755),
		os.Chown(dir, memberUID, memberUID), os.Chown(path, memberUID, memberUID)); err != nil { // a member's agent opens it, too
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return &lifeline{t: t, dir: dir, file: file}
}

// flag binds the FIFO into the sandbox.
func (l *lifeline) flag() string { return "-v=" + l.dir + ":" + filepath.Dir(lifelineInside) }

// begins waits until a process has the FIFO open: opening it blocks while it has no writer
// (fifo(7)). "run -d" answers when the agent's program was executed, and a shell opens the
// FIFO only after that.
func (l *lifeline) begins() {
	l.t.Helper()
	path := filepath.Join(l.dir, filepath.Base(lifelineInside))
	opened := make(chan error, 1)
	go func() {
		file, err := os.Open(path)
		if err == nil {
			file.Close()
		}
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			l.t.Fatal(err)
		}
	case <-time.After(patience()):
		if writer, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			writer.Close() // ends the blocking open above
		}
		l.t.Fatal("no process holds the lifeline")
	}
}

// beats waits for a byte that was written after the call. A process must have the FIFO open
// already.
func (l *lifeline) beats() {
	l.t.Helper()
	if err := l.drain(); !errors.Is(err, unix.EAGAIN) {
		l.t.Fatalf("no process has the lifeline open: %v", err)
	}
	l.file.SetReadDeadline(time.Now().Add(patience()))
	if _, err := l.file.Read(make([]byte, 1)); err != nil {
		l.t.Fatalf("no sign of life: %v", err)
	}
}

// silent reports whether nothing is written for a while, apart from what was written before.
func (l *lifeline) silent(idle time.Duration) bool {
	l.t.Helper()
	buffer := make([]byte, 4096)
	for deadline := time.Now().Add(patience()); time.Now().Before(deadline); {
		l.file.SetReadDeadline(time.Now().Add(idle))
		switch _, err := l.file.Read(buffer); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return true
		case err != nil:
			l.t.Fatalf("no process has the lifeline open: %v", err)
		}
	}
	return false
}

// gone waits for the end of every process that has the FIFO open.
func (l *lifeline) gone(within time.Duration) {
	l.t.Helper()
	within = testhost.Patience(within)
	if err := l.ended(within); err != nil {
		l.t.Errorf("a process lives on after %v: %v", within, err)
		l.cut()
	}
}

// ended waits for the FIFO's end. The test itself may have been off the CPU when the time was
// over, so an end that has come by then counts, although it is read later.
func (l *lifeline) ended(within time.Duration) error {
	l.file.SetReadDeadline(time.Now().Add(within))
	_, err := io.Copy(io.Discard, l.file)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	if last := l.drain(); !errors.Is(last, unix.EAGAIN) {
		return last
	}
	return err
}

// drain reads what is there without waiting. EAGAIN means that a process could write more; no
// error means that none could.
func (l *lifeline) drain() error {
	l.file.SetReadDeadline(time.Time{}) // Go would not read with a deadline in the past
	raw, err := l.file.SyscallConn()
	buffer := make([]byte, 1<<16) // the capacity of a FIFO
	for n := 1; err == nil && n > 0; {
		if cerr := raw.Read(func(fd uintptr) bool { n, err = unix.Read(int(fd), buffer); return true }); cerr != nil {
			return cerr
		}
	}
	return err
}

// atOnce is "at once" on a loaded machine.
const atOnce = 200 * time.Millisecond

// cut kills every process that has the FIFO open for writing, also outside of sandboxes. A
// process that forks during the search may leave a child that was not found.
func (l *lifeline) cut() {
	l.t.Helper()
	for range 50 {
		l.killHolders()
		if l.ended(100*time.Millisecond) == nil {
			return
		}
	}
}

func (l *lifeline) killHolders() {
	l.t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, link := range links {
		pid, err := strconv.Atoi(strings.Split(link, "/")[2])
		if target, _ := os.Readlink(link); target != filepath.Join(l.dir, "fifo") || err != nil || pid == os.Getpid() {
			continue
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			l.t.Error(err)
		}
	}
}
