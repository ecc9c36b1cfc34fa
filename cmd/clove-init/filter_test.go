package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
	"clove.run/clove/seccomp"
	"clove.run/clove/seccomp/notify"
)

// attempted is a second stage of a test, up to its execve, which fails because its file is no
// program.
type attempted struct {
	conn   *initproto.Conn
	direct chan error // how a message fares that the filtered thread sends itself
}

// asInStage gives the test what StageEnv gives a second stage: a thread that waits at the gate,
// or for its companion, keeps a processor of Go's, and cannot be stopped for a collection.
var asInStage = sync.OnceFunc(func() {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(16)
})

// failsToExecute begins one with these filters.
func failsToExecute(t *testing.T, plain, reporting []byte) attempted {
	t.Helper()
	asInStage()
	stage, conn := twoConns(t)
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("no program\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	orders := &initproto.Orders{Argv: initproto.Strings{path}, Filter: plain, Reporting: reporting}
	a := attempted{conn, make(chan error, 1)}
	go func() {
		runtime.LockOSThread() // for ever: the filter ends with the thread
		if err := noNewPrivs(orders); err != nil {
			t.Error(err)
		}
		image, err := newImage(path, orders)
		if err != nil {
			t.Error(err)
		}
		c := newCompanion(stage, nil)
		c.exit = func() {}
		image.executeFiltered(c)
		a.direct <- stage.Send(initproto.Message{Entered: &initproto.Entered{}})
	}()
	return a
}

// hears is the next message.
func (a attempted) hears(t *testing.T) initproto.Message {
	t.Helper()
	m, err := a.conn.Receive()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// minimal is a filter under which a thread can neither send nor wait.
func minimal(t *testing.T) *seccomp.Filter {
	t.Helper()
	profile, err := seccomp.Profile(seccomp.Minimal)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := seccomp.Compile(profile, initproto.GateOption)
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// A command that cannot be executed is reported, although the agent's filter refuses to send
// messages by then: the thread itself fails to.
func TestFailureUnderTheAgentsFilterIsReported(t *testing.T) {
	t.Parallel()
	a := failsToExecute(t, minimal(t).Plain, nil)
	if m := a.hears(t); m.Filtered == nil || m.Filtered.Listener != nil {
		t.Fatalf("%+v", m)
	}
	failure := a.hears(t).ExecFailed
	if failure == nil || failure.Errno != unix.ENOEXEC || failure.ExitCode != initproto.ExitCannotExec {
		t.Errorf("%+v", failure)
	}
	if err := <-a.direct; !errors.Is(err, unix.EPERM) {
		t.Errorf("the thread itself sends: %v", err)
	}
}

// The thread executes nothing before the listener has answered it, and nothing at all when
// the listener is gone.
func TestExecutionWaitsForTheListener(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		answer func(*notify.Listener, notify.Call) error
		step   string
		errno  unix.Errno
	}{
		"let through": {func(l *notify.Listener, c notify.Call) error { return l.Refuse(c, 0) }, "execve", unix.ENOEXEC},
		"refused":     {func(l *notify.Listener, c notify.Call) error { return l.Refuse(c, unix.EPERM) }, "filter", unix.EPERM},
		"gone":        {func(l *notify.Listener, _ notify.Call) error { return l.Close() }, "filter", unix.ENOSYS},
	} {
		t.Run(name, func(t *testing.T) {
			filter := minimal(t)
			a := failsToExecute(t, filter.Plain, filter.Reporting)
			m := a.hears(t)
			if m.Filtered == nil || m.Filtered.Listener == nil {
				t.Fatalf("%+v", m)
			}
			listener, err := notify.New(m.Filtered.Listener)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			call, err := listener.Receive()
			if err != nil || call.Number != unix.SYS_PRCTL || call.Args[0] != initproto.GateOption {
				t.Fatalf("%+v, %v", call, err)
			}
			if err := row.answer(listener, call); err != nil {
				t.Fatal(err)
			}
			failure := a.hears(t).ExecFailed
			if failure == nil || failure.Step != row.step || failure.Errno != row.errno {
				t.Errorf("%+v", failure)
			}
			// The filter hands over sending a message; without the listener it fails.
			listener.Close()
			if err := <-a.direct; !errors.Is(err, unix.ENOSYS) {
				t.Errorf("the thread itself sends: %v", err)
			}
		})
	}
}

// A program that the kernel does not take stops the start.
func TestFilterThatDoesNotLoadIsReported(t *testing.T) {
	t.Parallel()
	broken := make([]byte, 8) // no return at its end
	failure := failsToExecute(t, broken, broken).hears(t).ExecFailed
	if failure == nil || failure.Step != "filter" || failure.Errno != unix.EINVAL || failure.ExitCode != initproto.ExitStartFailed {
		t.Errorf("%+v", failure)
	}
}

// A limit that cannot be set is reported, and the thread that waits at the gate executes
// nothing.
func TestLimitThatCannotBeSetIsReported(t *testing.T) {
	t.Parallel()
	asInStage()
	conn, peer := twoConns(t)
	c := newCompanion(conn, []limit{{"nosuch", 9999, [2]uint64{}}})
	c.exit = func() {}
	close(c.begun)
	c.listener = noListener
	c.stage.Store(stageFiltered)
	m, err := peer.Receive()
	if err != nil || m.ExecFailed == nil || m.ExecFailed.Step != "rlimit nosuch" {
		t.Errorf("%+v, %v", m, err)
	}
	if errno := (&image{}).wait(c); errno == 0 {
		t.Error("the thread goes on")
	}
	c.failed(nil) // returns, because a failure was sent
	conn.Close()
	if _, err := peer.Receive(); err != io.EOF {
		t.Errorf("a second message: %v", err)
	}
}

// twoConns are both sides of a connection.
func twoConns(t *testing.T) (one, other *initproto.Conn) {
	t.Helper()
	one, inherited, err := initproto.Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(inherited.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	inherited.Close()
	if other, err = initproto.NewConn(fd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { one.Close(); other.Close() })
	return one, other
}
