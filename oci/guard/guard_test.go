package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/internal/testhost"
)

func state(t *testing.T, s agent.GuardState) (directory string) {
	t.Helper()
	directory = t.TempDir()
	if err := agent.WriteGuardState(directory, s); err != nil {
		t.Fatal(err)
	}
	return directory
}

// waits returns a container that was not started yet.
func waits() error { return nil }

func released(t *testing.T, directory string) {
	t.Helper()
	if _, err := agent.ReadGuardState(directory); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state is left: %v", err)
	}
}

func TestThereMayBeNothingToRelease(t *testing.T) {
	t.Parallel()
	if err := Release(t.TempDir(), "/absent"); err != nil {
		t.Errorf("no guard: %v", err)
	}
	for name, s := range map[string]agent.GuardState{
		"no process": {Namespace: "1:1"}, "one that has ended": {Namespace: "1:1", PID: 1<<22 + 1, Start: 1},
		"one whose number a thread has": {Namespace: "1:1", PID: testhost.Thread(t), Start: 1},
	} {
		for _, path := range []string{"", filepath.Join(t.TempDir(), "absent"), "/dev/null"} {
			directory := state(t, s)
			if err := Release(directory, path); err != nil {
				t.Errorf("%s, namespace %q: %v", name, path, err)
			}
			released(t, directory)
		}
	}
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, agent.GuardStateFile), []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Release(directory, ""); err == nil {
		t.Error("a state that cannot be read was passed over: the rules would stay")
	}
}

// sleeper starts a process in place of a guard, and returns its start time.
func sleeper(t *testing.T) (process *exec.Cmd, start uint64) {
	t.Helper()
	process = exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Process.Kill(); process.Wait() })
	start, err := pidfd.StartTime(process.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return process, start
}

// TestOnlyTheGuardItselfIsEnded: pids are used again.
func TestOnlyTheGuardItselfIsEnded(t *testing.T) {
	t.Parallel()
	process, start := sleeper(t)
	another := state(t, agent.GuardState{PID: process.Process.Pid, Start: start - 1})
	if err := Release(another, ""); err != nil {
		t.Fatal(err)
	}
	if now, err := pidfd.StartTime(process.Process.Pid); err != nil || now != start {
		t.Fatalf("another process was ended: %v", err)
	}
	its := state(t, agent.GuardState{PID: process.Process.Pid, Start: start})
	if err := Release(its, ""); err != nil {
		t.Fatal(err)
	}
	process.Wait()
	if how := process.ProcessState.String(); how != "signal: killed" {
		t.Errorf("the guard ended by %q", how)
	}
	released(t, its)
}

func TestWithoutClovedNothingIsHeld(t *testing.T) {
	t.Parallel()
	err := Ask(filepath.Join(t.TempDir(), "absent"), agent.Guard{Directory: t.TempDir(), PID: os.Getpid()}, waits)
	if agent.KindOf(err) != agent.KindUnenforceable {
		t.Errorf("%v", err)
	}
	if err := Ask("/absent", agent.Guard{Directory: "/absent", PID: os.Getpid()}, waits); err == nil {
		t.Error("a container that is not there is held")
	}
}

// TestAGuardMakesPlaceForTheNext: only for another one of the same container.
func TestAGuardMakesPlaceForTheNext(t *testing.T) {
	t.Parallel()
	process, start := sleeper(t)
	directory := state(t, agent.GuardState{PID: process.Process.Pid, Start: start})
	again := func() {
		Ask(filepath.Join(directory, "absent"), agent.Guard{Directory: directory, PID: os.Getpid()}, waits)
	}
	again()
	process.Wait()
	if how := process.ProcessState.String(); how != "signal: killed" {
		t.Errorf("the guard before ended by %q", how)
	}
	if _, err := agent.ReadGuardState(directory); err != nil {
		t.Errorf("what has to be taken back is forgotten: %v", err)
	}
	if err := os.WriteFile(filepath.Join(directory, agent.GuardStateFile), []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Ask("/absent", agent.Guard{Directory: directory, PID: os.Getpid()}, waits); err == nil || agent.KindOf(err) == agent.KindUnenforceable {
		t.Errorf("a state that cannot be read was passed over: %v", err)
	}
}

// TestAStartThatCameTooLateEndsNothing: another start has had the lock, and the container runs
// with its guard.
func TestAStartThatCameTooLateEndsNothing(t *testing.T) {
	t.Parallel()
	process, start := sleeper(t)
	directory := state(t, agent.GuardState{PID: process.Process.Pid, Start: start})
	late := errors.New("it runs")
	runs := func() error {
		if other, err := os.Open(directory); err != nil {
			t.Error(err)
		} else if err := unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
			t.Errorf("it is looked at without the lock: %v", err)
		}
		return late
	}
	if err := Ask("/absent", agent.Guard{Directory: directory, PID: os.Getpid()}, runs); err != late {
		t.Errorf("%v", err)
	}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process.Process.Pid)); err != nil || strings.Contains(string(text), ") Z ") {
		t.Errorf("its guard was ended: %s, %v", text, err)
	}
}

// TestARemovalWaitsForAStart: otherwise the start's guard would write rules while they are
// removed.
func TestARemovalWaitsForAStart(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	starts, err := lock(t.Context(), directory)
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() { released <- Release(directory, "") }()
	for deadline := time.Now().Add(testhost.Patience(time.Minute)); !awaited(t, directory); runtime.Gosched() {
		if len(released) > 0 || time.Now().After(deadline) {
			t.Fatal("it did not wait")
		}
	}
	if err := agent.WriteGuardState(directory, agent.GuardState{Namespace: "1:1"}); err != nil {
		t.Fatal(err)
	}
	starts.Close()
	if err := <-released; err != nil {
		t.Error(err)
	}
	if _, err := agent.ReadGuardState(directory); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what the start's guard wrote is left: %v", err)
	}
}

// awaited reports whether a process waits for the lock of a directory: proc_locks(5).
func awaited(t *testing.T, directory string) bool {
	t.Helper()
	var stat unix.Stat_t
	if err := unix.Stat(directory, &stat); err != nil {
		t.Fatal(err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(locks)) {
		if strings.Contains(line, "-> FLOCK") && strings.Contains(line, fmt.Sprintf(":%d ", stat.Ino)) {
			return true
		}
	}
	return false
}

// TestARemovalEndsTheGuardThatAStartWaitsFor: it does so before it waits for that start.
func TestARemovalEndsTheGuardThatAStartWaitsFor(t *testing.T) {
	t.Parallel()
	process, start := sleeper(t)
	hangs := time.AfterFunc(testhost.Patience(time.Minute), func() { t.Error("it was not ended"); process.Process.Kill() })
	defer hangs.Stop()
	directory := state(t, agent.GuardState{PID: process.Process.Pid, Start: start})
	starts, err := lock(t.Context(), directory)
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() { released <- Release(directory, "") }()
	process.Wait() // it was killed, or the test fails
	starts.Close()
	if err := <-released; err != nil {
		t.Error(err)
	}
}
