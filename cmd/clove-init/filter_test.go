package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
	"clove.run/clove/seccomp"
)

// failsToExecute becomes an agent whose file is no program, and reports that as a second stage
// does. direct is how a message fares that the filtered thread sends itself.
func failsToExecute(t *testing.T, filter []byte) (reported *initproto.ExecFailed, direct error) {
	t.Helper()
	conn, inherited, err := initproto.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer inherited.Close()
	fd, err := unix.Dup(int(inherited.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	stage, err := initproto.NewConn(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer stage.Close()
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("no program\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	orders := &initproto.Orders{Argv: initproto.Strings{path}, Filter: filter}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // for ever: the filter ends with the thread
		ended <- func() error {
			if err := noNewPrivs(orders); err != nil {
				return err
			}
			send := failureSender(stage, orders)
			image, err := newImage(path, orders)
			if err != nil {
				return err
			}
			failure := image.execute()
			direct = stage.Send(initproto.Message{Entered: &initproto.Entered{}})
			return send(failure)
		}()
	}()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	for {
		m, err := conn.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if m.ExecFailed != nil {
			return m.ExecFailed, direct
		}
	}
}

// A command that cannot be executed is reported, although the agent's filter refuses sockets by
// then.
func TestFailureUnderTheAgentsFilterIsReported(t *testing.T) {
	t.Parallel()
	profile, err := seccomp.Profile(seccomp.Minimal)
	if err != nil {
		t.Fatal(err)
	}
	filter, err := seccomp.Program(profile)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		filter []byte
		direct error
	}{{nil, nil}, {filter, unix.EPERM}} {
		failure, direct := failsToExecute(t, row.filter)
		if failure.Errno != unix.ENOEXEC || failure.ExitCode != initproto.ExitCannotExec {
			t.Errorf("with %d bytes of filter: %+v", len(row.filter), failure)
		}
		if !errors.Is(direct, row.direct) {
			t.Errorf("with %d bytes of filter the thread itself sends: %v, want %v", len(row.filter), direct, row.direct)
		}
	}
}

// A program that the kernel does not take stops the start.
func TestFilterThatDoesNotLoadIsReported(t *testing.T) {
	t.Parallel()
	failure, _ := failsToExecute(t, make([]byte, 8)) // no return at its end
	if failure.Step != "filter" || failure.Errno != unix.EINVAL || failure.ExitCode != initproto.ExitStartFailed {
		t.Errorf("%+v", failure)
	}
}
