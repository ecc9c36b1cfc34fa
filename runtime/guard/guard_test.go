package guard

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/netns"
)

func state(t *testing.T, s agent.GuardState) (directory string) {
	t.Helper()
	directory = t.TempDir()
	if err := agent.WriteGuardState(directory, s); err != nil {
		t.Fatal(err)
	}
	return directory
}

func released(t *testing.T, directory string) {
	t.Helper()
	if _, err := agent.ReadGuardState(directory); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state is left: %v", err)
	}
}

func TestThereMayBeNothingToRelease(t *testing.T) {
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

// TestOnlyTheGuardItselfIsEnded: numbers come again.
func TestOnlyTheGuardItselfIsEnded(t *testing.T) {
	process := exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Process.Kill(); process.Wait() })
	start, err := netns.StartTime(process.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	another := state(t, agent.GuardState{PID: process.Process.Pid, Start: start - 1})
	if err := Release(another, ""); err != nil {
		t.Fatal(err)
	}
	if now, err := netns.StartTime(process.Process.Pid); err != nil || now != start {
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
	err := Ask(filepath.Join(t.TempDir(), "absent"), agent.Guard{Directory: t.TempDir(), PID: os.Getpid()})
	if agent.KindOf(err) != agent.KindUnenforceable {
		t.Errorf("%v", err)
	}
	if err := Ask("/absent", agent.Guard{Directory: "/absent", PID: os.Getpid()}); err == nil {
		t.Error("a container that is not there is held")
	}
}

// TestAGuardMakesPlaceForTheNext, and for nobody else's.
func TestAGuardMakesPlaceForTheNext(t *testing.T) {
	process := exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Process.Kill(); process.Wait() })
	start, err := netns.StartTime(process.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	directory := state(t, agent.GuardState{PID: process.Process.Pid, Start: start})
	again := func() { Ask(filepath.Join(directory, "absent"), agent.Guard{Directory: directory, PID: os.Getpid()}) }
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
	if err := Ask("/absent", agent.Guard{Directory: directory, PID: os.Getpid()}); err == nil || agent.KindOf(err) == agent.KindUnenforceable {
		t.Errorf("a state that cannot be read was passed over: %v", err)
	}
}
