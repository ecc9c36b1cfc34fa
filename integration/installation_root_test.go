//go:build root

package integration

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
)

const beating = holdLifeline + "echo ready; while :; do echo beat >&9; sleep 0.02; done"

// keepBeating starts an agent that writes to the lifeline until it is ended.
func (h *host) keepBeating(name string) (*running, *lifeline) {
	h.t.Helper()
	life := newLifeline(h.t)
	r := h.keep(name, []string{life.flag()}, "sh", "-c", beating)
	if line := r.line(); line != "ready" {
		h.t.Fatalf("%q\n%s", line, &r.stderr)
	}
	h.inspectRunning(name)
	return r, life
}

// elsewhere is this host with the same paths in a mount namespace, where they are other
// directories.
func (h *host) elsewhere() *host {
	h.t.Helper()
	dir := filepath.Dir(h.state)
	other, err := os.MkdirTemp("", "clove")
	if err != nil {
		h.t.Fatal(err)
	}
	thread, err := nsthread.Start(unix.CLONE_NEWNS)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { thread.Close(); os.RemoveAll(other) })
	err = thread.Do(func() error {
		return errors.Join(os.Chmod(other, 0o711), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(other, dir, "", unix.MS_BIND, ""))
	})
	if err != nil {
		h.t.Fatal(err)
	}
	there := *h
	there.inside = thread.Do
	return &there
}

// leavesAlone: h's check and gc neither see nor end another installation's agent. The control
// is gc of the agent's own installation after its clove has died.
func (h *host) leavesAlone(owner *host) {
	h.t.Helper()
	r, life := owner.keepBeating("theirs")
	if check := h.clove("check"); check.code != 0 {
		h.t.Errorf("check sees the other installation:\n%s%s", check.stdout, check.stderr)
	}
	if gc := h.clove("gc"); gc.code != 0 || strings.TrimSpace(gc.stdout) != "" {
		h.t.Errorf("gc: exit %d, %s%s", gc.code, gc.stdout, gc.stderr)
	}
	life.beats()
	r.cmd.Process.Kill()
	r.cmd.Wait()
	if gc := owner.clove("gc"); gc.code != 0 || !strings.Contains(gc.stdout, "theirs") {
		h.t.Errorf("control: gc: exit %d, %s%s", gc.code, gc.stdout, gc.stderr)
	}
	life.gone(atOnce)
}

// TestInstallationsLeaveEachOtherAlone: two state directories on one host.
func TestInstallationsLeaveEachOtherAlone(t *testing.T) {
	newHost(t).leavesAlone(newHost(t))
}

// TestAlikePathsAreTwoInstallations: in another mount namespace, the same paths are other
// directories, but both share one cgroup tree.
func TestAlikePathsAreTwoInstallations(t *testing.T) {
	h := newHost(t)
	h.elsewhere().leavesAlone(h)
}

// TestAnotherRunDirectoryIsRefused: while a run or cloved is alive in the first one. Its lock
// could not be seen, so a clean-up would treat it as dead. The control is the same when
// nothing is alive.
func TestAnotherRunDirectoryIsRefused(t *testing.T) {
	h := newHost(t)
	r, life := h.keepBeating("mine")
	other := *h
	other.run = filepath.Join(filepath.Dir(h.run), "other")
	if got := other.clove("run", "--rm", "--", "true"); got.code != agent.ExitStartFailed || !strings.Contains(got.stderr, h.run) || !strings.Contains(got.stderr, "hint:") {
		t.Errorf("run: exit %d\n%s", got.code, got.stderr)
	}
	if got := other.clove("check"); got.code == 0 || !strings.Contains(got.stdout, h.run) {
		t.Errorf("check: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := other.clove("gc"); got.code == 0 || !strings.Contains(got.stderr, h.run) {
		t.Errorf("gc: exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	life.beats()
	r.cmd.Process.Signal(unix.SIGTERM)
	if got := r.wait(); got.code != agent.ExitSignalBase+int(unix.SIGTERM) {
		t.Errorf("the agent: exit %d\n%s", got.code, got.stderr)
	}
	if got := other.clove("run", "--rm", "--", "true"); got.code != 0 {
		t.Errorf("control: exit %d\n%s", got.code, got.stderr)
	}
}

// TestALostRunDirectory: if the directory, or its contents, are removed, no agent ends,
// neither at once nor by the next run; check reports the agent, and gc ends it and its
// supervisor. The control is the run after that.
func TestALostRunDirectory(t *testing.T) {
	for name, row := range map[string]struct {
		lose func(*host) error
		next int // exit status of the next run
	}{
		"all":     {func(h *host) error { return os.RemoveAll(h.run) }, agent.ExitStartFailed},
		"content": {func(h *host) error { return os.RemoveAll(filepath.Join(h.run, string(h.inspect("mine").Spec.ID))) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			r, life := h.keepBeating("mine")
			if err := row.lose(h); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if next := h.clove("run", "--rm", "--", "true"); next.code != row.next {
					t.Errorf("the next run: exit %d\n%s", next.code, next.stderr)
				}
				life.beats()
			}
			if check := h.clove("check"); check.code != 1 || !strings.Contains(check.stdout, "mine is running, but its run directory is gone") {
				t.Errorf("check: exit %d\n%s%s", check.code, check.stdout, check.stderr)
			}
			if gc := h.clove("gc"); gc.code != 0 || !strings.Contains(gc.stdout, "mine") {
				t.Errorf("gc: exit %d\n%s%s", gc.code, gc.stdout, gc.stderr)
			}
			life.gone(atOnce)
			r.cmd.Wait() // it was killed
			record := h.inspect("mine").Record
			if record == nil || record.Status != agent.StatusKilled || record.Error == nil || !strings.Contains(record.Error.Message, "run directory was removed") {
				t.Errorf("record: %+v", record)
			}
			if next := h.clove("run", "--rm", "--", "true"); next.code != 0 {
				t.Errorf("control: the next run: exit %d\n%s", next.code, next.stderr)
			}
		})
	}
}

// TestALostSupervisorEnds: its record is in the store, and nothing of the run waits for its
// directory. With cloved, the processes that start runs and answer have lost the directory, so
// no run starts again before gc.
func TestALostSupervisorEnds(t *testing.T) {
	d := newCloved(t)
	life := newLifeline(t)
	if r := d.clove("run", "-d", "--name=mine", life.flag(), "--", "sh", "-c", beating); r.code != 0 {
		t.Fatal(r.stderr)
	}
	life.begins()
	life.beats()
	run := d.inspect("mine")
	d.stop(unix.SIGTERM)
	if err := os.RemoveAll(d.run); err != nil {
		t.Fatal(err)
	}
	life.beats()
	if err := unix.Kill(run.Lease.SupervisorPID, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, run.Lease.SupervisorPID)
	life.gone(atOnce)
	d.serve()
	if now := d.inspect("mine"); now.Record == nil || now.Record.Status != agent.StatusSignaled {
		t.Errorf("%+v", now.Record)
	}
}
