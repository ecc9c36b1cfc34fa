package main

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTheFirstProcessReapsAll: this process becomes a subreaper, so that orphans become its
// children, as they do for PID 1.
func TestTheFirstProcessReapsAll(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	for script, want := range map[string]int{
		"exit 7":                    7,
		"kill -9 $$":                137,
		"kill -STOP $$; exit 6":     6, // no other process would continue it
		"(sh -c 'exit 3' &) ; wait": 0,
		"(sleep 0.1; exit 3) & (exit 4) & sh -c '(sleep 0.05 &)'; wait; exit 5": 5,
	} {
		command := exec.Command("sh", "-c", script)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if got := reap(command.Process.Pid); got != want {
			t.Errorf("%s: %d, want %d", script, got, want)
		}
	}
	// If an orphan outlives clove as PID 1, the kernel ends it. Here the test waits for it, so
	// that each orphan is seen to be a child of this process.
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err == unix.ECHILD {
			return
		} else if err != nil && err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

func TestSignalsForTheFirstProcessItselfStayThere(t *testing.T) {
	command := exec.Command("sh", "-c", "trap 'exit 9' TERM; trap 'exit 8' CHLD; echo up; read never")
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	received := make(chan os.Signal, 3)
	received <- unix.SIGCHLD
	received <- unix.SIGURG
	received <- unix.SIGTERM
	close(received)
	passOn(received, command.Process.Pid)
	// A shell that is about to read acts on the signals only after its read.
	stdin.Close()
	command.Wait()
	if got := command.ProcessState.ExitCode(); got != 9 {
		t.Errorf("exit %d", got)
	}
}
