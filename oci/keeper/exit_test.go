package keeper

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// begun is a child that nobody has buried, its pidfd and its start time.
func begun(t *testing.T, script string) (cmd *exec.Cmd, pidfd int, start uint64) {
	t.Helper()
	cmd = exec.Command("sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	fields, err := statOf(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if start, err = strconv.ParseUint(fields[statStartTime], 10, 64); err != nil {
		t.Fatal(err)
	}
	pidfd, err = open(cmd.Process.Pid, start)
	if err != nil || pidfd < 0 {
		t.Fatalf("%d, %v", pidfd, err)
	}
	t.Cleanup(func() { unix.Close(pidfd) })
	return cmd, pidfd, start
}

func TestTheStatusOfAnothersChildIsKnown(t *testing.T) {
	_, kernel := findSource(sourcePidfd)
	if kernel != nil && !errors.Is(kernel, errStatus) {
		t.Fatal(kernel)
	}
	for script, want := range map[string]unix.WaitStatus{"exit 0": exited(0), "exit 7": exited(7), "kill -9 $$": killed(unix.SIGKILL)} {
		cmd, pidfd, _ := begun(t, script)
		waitEnd(pidfd)
		if _, known := buried(pidfd); known {
			t.Errorf("%s: a zombie is buried", script)
		}
		if got, known := unburied(cmd.Process.Pid); known != mayTrace() || known && got != want {
			t.Errorf("%s: the zombie says %x, %t", script, got, known)
		}
		_ = cmd.Wait()
		if _, known := unburied(cmd.Process.Pid); known {
			t.Errorf("%s: nobody is a zombie", script)
		}
		got, known := buried(pidfd)
		if known != (kernel == nil) || known && got != want {
			t.Errorf("%s: buried with %x, %t; the kernel: %v", script, got, known, kernel)
		}
		if kernel == nil && status(pidfd, cmd.Process.Pid) != want {
			t.Errorf("%s: another status", script)
		}
	}
}

// TestALivingProcessHasNoStatus.
func TestALivingProcessHasNoStatus(t *testing.T) {
	cmd, pidfd, _ := begun(t, "exec sleep 1000")
	if _, known := buried(pidfd); known {
		t.Error("it is buried alive")
	}
	if _, known := unburied(cmd.Process.Pid); known {
		t.Error("it is a zombie alive")
	}
}

// TestANumberIsNoProcess: the time beside it is.
func TestANumberIsNoProcess(t *testing.T) {
	cmd, _, start := begun(t, "exec sleep 1000")
	if pidfd, err := open(cmd.Process.Pid, start+1); pidfd != -1 || err != nil {
		t.Errorf("another's number: %d, %v", pidfd, err)
	}
	for name, pid := range map[string]int{"a number that none has": 1<<22 + 1, "a thread's number": testhost.Thread(t)} {
		if pidfd, err := open(pid, start); pidfd != -1 || err != nil {
			t.Errorf("%s: %d, %v", name, pidfd, err)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if pidfd, err := open(cmd.Process.Pid, start); pidfd != -1 || err != nil {
		t.Errorf("gone: %d, %v", pidfd, err)
	}
}

func TestAProcessBesideTheKeeperIsInReach(t *testing.T) {
	if hidden, err := hiddenFrom(os.Getpid()); hidden || err != nil {
		t.Errorf("the keeper's own pid namespace: %t, %v", hidden, err)
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
