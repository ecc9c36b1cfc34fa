//go:build root

package probe

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"clove.run/clove/internal/testhost"
)

// The control by itself: outside, as root, no attack fails with the error that is expected
// inside.
func TestAttacksWorkOutside(t *testing.T) {
	testhost.Root(t)
	testhost.NoResidue(t)
	program := build(t)
	for _, c := range Commands(child(t), t.TempDir()) {
		outside := run(t, program, c.Args...)
		// The rows as in a perfect sandbox: all remaining problems concern the control.
		inside := map[string]Result{}
		for _, a := range c.Attacks {
			inside[a.Name] = Result{Errno: a.Held[0]}
		}
		for _, name := range c.Passes {
			inside[name] = Result{OK: true}
		}
		for _, line := range c.LeftOut(outside) {
			t.Log(line)
		}
		for _, problem := range c.Problem(outside, inside) {
			t.Error(problem)
		}
		for name, r := range outside {
			if !r.OK {
				t.Logf("outside too: %s: %s", name, r.Errno)
			}
		}
	}
}

// child is a process of the test that waits until the end of the test.
func child(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = io.Discard
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); cmd.Wait() })
	return strconv.Itoa(cmd.Process.Pid)
}

// If nothing prevents it, a set-uid copy of the program makes another user root.
func TestSetuidWorksOutside(t *testing.T) {
	testhost.Root(t)
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	text, err := os.ReadFile(build(t))
	if err != nil {
		t.Fatal(err)
	}
	setuid := filepath.Join(dir, "setuid")
	if err := os.WriteFile(setuid, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, setuid} {
		if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(setuid, "setuid-exec", setuid)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	results, err := Parse(output)
	if err != nil || !results["ids"].OK {
		t.Errorf("%v: %s", err, output)
	}
}

// A daemon outlives the process that started it, and continues to write.
func TestDaemonsLinger(t *testing.T) {
	testhost.Root(t)
	program, heartbeat := build(t), filepath.Join(t.TempDir(), "heartbeat")
	if err := syscall.Mkfifo(heartbeat, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, program, "daemonize", heartbeat, "5")["daemonize"]; !r.OK {
		t.Fatalf("%+v", r)
	}
	// The read waits for the daemon's first output; closing the file ends the daemon by EPIPE.
	file, err := os.Open(heartbeat)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := io.ReadFull(file, make([]byte, 3)); err != nil {
		t.Error(err)
	}
}
