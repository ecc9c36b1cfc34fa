package monitor

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/pidfd"
)

// begun returns a child that is not reaped, and its start time.
func begun(t *testing.T, script string) (cmd *exec.Cmd, process *pidfd.Process, start uint64) {
	t.Helper()
	cmd = exec.Command("sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	start, err := pidfd.StartTime(cmd.Process.Pid)
	if err == nil {
		process, err = pidfd.OpenStarted(cmd.Process.Pid, start)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	return cmd, process, start
}

func TestTheStatusOfAnothersChildIsKnown(t *testing.T) {
	_, kernel := findSource(sourcePidfd)
	if kernel != nil && !errors.Is(kernel, errStatus) {
		t.Fatal(kernel)
	}
	for script, want := range map[string]unix.WaitStatus{"exit 0": exited(0), "exit 7": exited(7), "kill -9 $$": killed(unix.SIGKILL)} {
		cmd, process, _ := begun(t, script)
		process.Wait(t.Context())
		if _, known := reaped(process); known {
			t.Errorf("%s: a zombie is taken as reaped", script)
		}
		if got, known := zombieStatus(cmd.Process.Pid); known != mayTrace() || known && got != want {
			t.Errorf("%s: the zombie says %x, %t", script, got, known)
		}
		_ = cmd.Wait()
		if _, known := zombieStatus(cmd.Process.Pid); known {
			t.Errorf("%s: a reaped process is a zombie", script)
		}
		got, known := reaped(process)
		if known != (kernel == nil) || known && got != want {
			t.Errorf("%s: reaped with %x, %t; the kernel: %v", script, got, known, kernel)
		}
		if kernel == nil && status(process, cmd.Process.Pid) != want {
			t.Errorf("%s: another status", script)
		}
	}
}

func TestALivingProcessHasNoStatus(t *testing.T) {
	cmd, process, _ := begun(t, "exec sleep 1000")
	if _, known := reaped(process); known {
		t.Error("a live process has a status")
	}
	if _, known := zombieStatus(cmd.Process.Pid); known {
		t.Error("it is a zombie alive")
	}
}

func TestAProcessBesideTheMonitorIsInReach(t *testing.T) {
	if hidden, err := hiddenFrom(os.Getpid()); hidden || err != nil {
		t.Errorf("the monitor's own pid namespace: %t, %v", hidden, err)
	}
	if _, err := hiddenFrom(1<<22 + 1); err == nil {
		t.Error("a process that is not there is hidden")
	}
}

func TestTheHostsRootIsFoundInAMap(t *testing.T) {
	for text, want := range map[string]bool{
		"         0          0 4294967295\n": true,
		"0 100000 65536\n":                   false,
		"0 100000 65536\n1000 0 1\n":         true,
		"65534 0 1\n0 1 10\n":                true,
		"0 1 4294967294\n":                   false,
		"":                                   false,
	} {
		path := filepath.Join(t.TempDir(), "uid_map")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := mapsRoot(path); got != want || err != nil {
			t.Errorf("%q: %t, %v", text, got, err)
		}
	}
	for _, text := range []string{"0 0\n", "0 x 1\n"} {
		path := filepath.Join(t.TempDir(), "uid_map")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := mapsRoot(path); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}
