//go:build root

package integration

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// slowMaker is a folder with a mke2fs that runs a script, prints its pid and waits; said
// returns that line.
func slowMaker(t *testing.T, script string) (dir string, said func() string) {
	t.Helper()
	dir = t.TempDir()
	fifo := filepath.Join(dir, "ready")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\nexec 3>" + fifo + "\n" + script + "\necho $$ >&3\nexec 3>&-\nexec sleep 1000\n"
	if err := os.WriteFile(filepath.Join(dir, "mke2fs"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, func() string {
		t.Helper()
		ready, err := os.Open(fifo)
		if err != nil {
			t.Fatal(err)
		}
		defer ready.Close()
		line, _ := bufio.NewReader(ready).ReadString('\n')
		return strings.TrimSpace(line)
	}
}

// slow begins a run called slow, and returns the file with clove's messages.
func (h *host) slow(variable string, flags ...string) (cmd *exec.Cmd, errs string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	h.t.Cleanup(cancel)
	cmd = h.command(ctx, append(append([]string{"run", "--name=slow"}, flags...), "--", "true")...)
	cmd.Env = append(cmd.Env, variable)
	file, err := os.Create(filepath.Join(h.t.TempDir(), "stderr"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer file.Close()
	cmd.Stderr = file
	if err := h.begin(cmd); err != nil {
		h.t.Fatal(err)
	}
	return cmd, file.Name()
}

// hangingStart begins a run whose start waits for a slowMaker, and returns when that has
// printed its line.
func (h *host) hangingStart(script string, flags ...string) (cmd *exec.Cmd, line, errs string) {
	h.t.Helper()
	dir, said := slowMaker(h.t, script)
	cmd, errs = h.slow("PATH="+dir+":"+os.Getenv("PATH"), flags...)
	return cmd, said(), errs
}

// gaveUp checks that clove soon ended with an error and its reason; the record, if there is
// one, names the step.
func (h *host) gaveUp(cmd *exec.Cmd, errs string, within time.Duration, says, step string, recorded bool) {
	h.t.Helper()
	began := time.Now()
	cmd.Wait() // the exit status is checked
	took := time.Since(began)
	text, _ := os.ReadFile(errs)
	if cmd.ProcessState.ExitCode() != agent.ExitStartFailed || !strings.Contains(string(text), says) || took > within {
		h.t.Errorf("exit %d after %s, want within %s\n%s", cmd.ProcessState.ExitCode(), took, within, text)
	}
	if !recorded {
		if ps := h.clove("ps", "-a"); ps.code != 0 || strings.Contains(ps.stdout, "slow") {
			h.t.Errorf("it is known:\n%s%s", ps.stdout, ps.stderr)
		}
		return
	}
	record := h.inspect("slow").Record
	if record == nil || record.Status != agent.StatusStartFailed || record.Error == nil || record.Error.Step != step || !strings.Contains(record.Error.Message, says) {
		h.t.Errorf("record: %+v", record)
	}
}

// givenUp is longer than giving up takes.
func givenUp() time.Duration { return testhost.Patience(20 * time.Second) }

// TestAStartThatHangsIsGivenUp: the process that it waited for is killed. The control: a
// second later it has not returned by itself.
func TestAStartThatHangsIsGivenUp(t *testing.T) {
	h := newHost(t)
	cmd, line, errs := h.hangingStart("", "--start-timeout=1s")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if exits(t, pid, time.Second/2) {
		t.Error("control: it ended by itself")
	}
	h.gaveUp(cmd, errs, givenUp(), "no progress for 1s", "rootfs", true)
	awaitExit(t, pid)
	if next := h.clove("run", "--rm", "--", "true"); next.code != 0 {
		t.Errorf("the next run: exit %d\n%s", next.code, next.stderr)
	}
}

// TestTheMakerOfATemplateIsKilled: the next run removes the incomplete template. The control
// is check's report before that.
func TestTheMakerOfATemplateIsKilled(t *testing.T) {
	h := newHost(t)
	h.clove("run", "--rm", "--", "true") // makes its own template, so that the next run makes none
	cmd, line, _ := h.hangingStart("", "--disk=64M")
	cmd.Process.Kill()
	cmd.Wait()
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	unix.Kill(pid, unix.SIGKILL)
	awaitExit(t, pid)
	if check := h.clove("check"); check.code != 1 || !strings.Contains(check.stdout, "template") {
		t.Errorf("control: check: exit %d\n%s%s", check.code, check.stdout, check.stderr)
	}
	if next := h.clove("run", "--rm", "--", "true"); next.code != 0 {
		t.Errorf("the next run: exit %d\n%s", next.code, next.stderr)
	}
	if check := h.clove("check"); check.code != 0 {
		t.Errorf("left:\n%s%s", check.stdout, check.stderr)
	}
}

// TestASignalEndsAStart: one that hangs, long before its time limit.
func TestASignalEndsAStart(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM} {
		t.Run(unix.SignalName(signal), func(t *testing.T) {
			h := newHost(t)
			cmd, line, errs := h.hangingStart("", "--start-timeout=1h")
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			h.gaveUp(cmd, errs, givenUp(), unix.SignalName(signal)+" came", "rootfs", true)
			pid, _ := strconv.Atoi(line)
			awaitExit(t, pid)
		})
	}
}

// TestAFoldedRunDirectory: a run directory below a folder that others may not pass through is
// reported by doctor, and a start is refused before anything is made. The control is the same
// folder when others may pass.
func TestAFoldedRunDirectory(t *testing.T) {
	h := newHost(t)
	folder := filepath.Join(filepath.Dir(h.run), "folder")
	folded := *h
	folded.run = filepath.Join(folder, "run")
	for mode, want := range map[os.FileMode]int{0o700: agent.ExitStartFailed, 0o711: 0} {
		if err := errors.Join(os.MkdirAll(folder, mode), os.Chmod(folder, mode)); err != nil {
			t.Fatal(err)
		}
		says := "others may not pass through " + folder
		got := folded.clove("run", "--name=folded", "--", "true")
		if got.code != want || strings.Contains(got.stderr, says) != (want != 0) {
			t.Errorf("%04o: exit %d\n%s", mode, got.code, got.stderr)
		}
		if doctor := folded.clove("doctor", "--json"); strings.Contains(doctor.stdout, says) != (want != 0) {
			t.Errorf("%04o: doctor:\n%s", mode, doctor.stdout)
		}
		if ps := folded.clove("ps", "-a"); strings.Contains(ps.stdout, "folded") != (want == 0) {
			t.Errorf("%04o: ps:\n%s", mode, ps.stdout)
		}
		if want == 0 {
			folded.clove("rm", "folded")
		}
	}
}

// freezer makes a frozen cgroup of cgroup v1. No signal ends a process in it, as if it hung in
// the kernel.
func freezer(t *testing.T) (dir string, freeze, thaw func()) {
	t.Helper()
	dir = filepath.Join("/sys/fs/cgroup/freezer", "clove-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	set := func(state string) func() {
		return func() {
			t.Helper()
			if err := os.WriteFile(filepath.Join(dir, "freezer.state"), []byte(state), 0); err != nil {
				t.Error(err)
			}
		}
	}
	freeze, thaw = set("FROZEN"), set("THAWED")
	t.Cleanup(func() { thaw(); os.Remove(dir) })
	return dir, freeze, thaw
}

// namesStuck checks that check names the process in which a start hangs, and that gc leaves
// it.
func (h *host) namesStuck(pid string) {
	h.t.Helper()
	for range 2 {
		check := h.clove("check")
		if check.code != 1 || !strings.Contains(check.stdout, "process "+pid+" (") || !strings.Contains(check.stdout, "state D") || !strings.Contains(check.stdout, "its step rootfs") {
			h.t.Errorf("check: exit %d\n%s%s", check.code, check.stdout, check.stderr)
		}
		if gc := h.clove("gc"); gc.code == 0 || !strings.Contains(gc.stderr, pid) {
			h.t.Errorf("gc: exit %d\n%s%s", gc.code, gc.stdout, gc.stderr)
		}
	}
}

// endsThawed thaws the process, and then gc removes what it held.
func (h *host) endsThawed(thaw func(), pid string) {
	h.t.Helper()
	number, err := strconv.Atoi(pid)
	if err != nil {
		h.t.Fatal(err)
	}
	thaw()
	// Linux may let a process that was frozen in its sleep sleep on, and not look at the signal that came meanwhile.
	if err := unix.Kill(number, unix.SIGKILL); err != nil && err != unix.ESRCH {
		h.t.Error(err)
	}
	awaitExit(h.t, number)
	if gc := h.clove("gc"); gc.code != 0 {
		h.t.Errorf("control: gc when it is gone: exit %d\n%s%s", gc.code, gc.stdout, gc.stderr)
	}
}

// TestWhatCannotBeKilledIsNamed: a start waits for a process that no signal ends. The run
// ends, check names the process until it is gone, and then gc removes what it held.
func TestWhatCannotBeKilledIsNamed(t *testing.T) {
	h := newHost(t)
	dir, freeze, thaw := freezer(t)
	cmd, line, errs := h.hangingStart("echo $$ >"+dir+"/cgroup.procs", "--start-timeout=1s")
	freeze()
	h.gaveUp(cmd, errs, givenUp(), "no progress for 1s", "rootfs", true)
	h.namesStuck(line)
	if next := h.clove("run", "--rm", "--", "true"); next.code != 0 {
		t.Errorf("the next run: exit %d\n%s", next.code, next.stderr)
	}
	h.endsThawed(thaw, line)
}
