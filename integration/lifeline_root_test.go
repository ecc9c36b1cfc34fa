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

// lifeline is a FIFO that a whole tree of processes holds open: its end of
// file is the moment in which the last of them is gone, its bytes say that
// somebody is alive.
type lifeline struct {
	t    *testing.T
	dir  string
	file *os.File
}

// lifelineInside is where the agent finds the FIFO; holdLifeline is the shell's
// way to hold it as descriptor 9, which children inherit.
const (
	lifelineInside = "/lifeline/fifo"
	holdLifeline   = "exec 9>" + lifelineInside + "; "
)

func newLifeline(t *testing.T) *lifeline {
	t.Helper()
	dir, err := os.MkdirTemp("", "clove-life") // below what everybody enters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "fifo")
	if err := errors.Join(unix.Mkfifo(path, 0o666), os.Chmod(path, 0o666), os.Chmod(dir, 0o755),
		os.Chown(dir, memberUID, memberUID), os.Chown(path, memberUID, memberUID)); err != nil { // a member's agent holds it, too
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

// begins waits until somebody holds the FIFO: opening it blocks for as long as it
// has no writer (fifo(7)). "run -d" answers when the agent's program was executed,
// and a shell opens its FIFO only then.
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
			writer.Close() // ends the open above
		}
		l.t.Fatal("nobody holds the lifeline")
	}
}

// beats waits for a sign of life that is newer than the call. Somebody must
// hold the FIFO already.
func (l *lifeline) beats() {
	l.t.Helper()
	if err := l.drain(); !errors.Is(err, unix.EAGAIN) {
		l.t.Fatalf("nobody is there to give a sign: %v", err)
	}
	l.file.SetReadDeadline(time.Now().Add(patience()))
	if _, err := l.file.Read(make([]byte, 1)); err != nil {
		l.t.Fatalf("no sign of life: %v", err)
	}
}

// silent tells whether nobody beats for a while, after what was written before.
func (l *lifeline) silent(idle time.Duration) bool {
	l.t.Helper()
	buffer := make([]byte, 4096)
	for deadline := time.Now().Add(patience()); time.Now().Before(deadline); {
		l.file.SetReadDeadline(time.Now().Add(idle))
		switch _, err := l.file.Read(buffer); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return true
		case err != nil:
			l.t.Fatalf("nobody is there to be silent: %v", err)
		}
	}
	return false
}

// gone waits for the end of everybody who holds the FIFO.
func (l *lifeline) gone(within time.Duration) {
	l.t.Helper()
	within = testhost.Patience(within)
	if err := l.ended(within); err != nil {
		l.t.Errorf("somebody lives on after %v: %v", within, err)
		l.cut()
	}
}

// ended waits for the FIFO's end. The test's own time off the CPU is nobody's
// life: what is there by then counts, whenever it is read.
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

// drain takes what is there and waits for nothing. EAGAIN says that there is
// somebody who could write more, and no error that there is nobody.
func (l *lifeline) drain() error {
	l.file.SetReadDeadline(time.Time{}) // one that is past keeps Go from reading
	raw, err := l.file.SyscallConn()
	buffer := make([]byte, 1<<16) // all that a FIFO holds
	for n := 1; err == nil && n > 0; {
		if cerr := raw.Read(func(fd uintptr) bool { n, err = unix.Read(int(fd), buffer); return true }); cerr != nil {
			return cerr
		}
	}
	return err
}

// atOnce is what a moment is on a loaded machine.
const atOnce = 200 * time.Millisecond

// cut kills everybody who holds the FIFO for writing, outside of sandboxes too.
// Who forks while the holders are looked for leaves a child that was not seen.
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
