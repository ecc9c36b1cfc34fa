//go:build root

package integration

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/testhost"
)

// withEnv starts the daemon again with these variables.
func (d *cloved) withEnv(env ...string) {
	d.t.Helper()
	d.stop(unix.SIGTERM)
	d.env = env
	d.serve()
}

// brief is a --start-timeout that a start which hangs exceeds, and one that does not keeps:
// on a loaded host a step may take more than a second, and several under emulation.
func brief() string {
	if testhost.Lane() == "vm" {
		return "6s"
	}
	return "3s"
}

// TestADetachedStartThatHangsIsGivenUp: the caller gets an error, the record has it, and the
// next start may begin. The control is a restart of the run with nothing to hang in.
func TestADetachedStartThatHangsIsGivenUp(t *testing.T) {
	d := newCloved(t)
	dir, said := slowMaker(t, "")
	d.withEnv("PATH=" + dir + ":" + os.Getenv("PATH"))
	cmd, errs := d.slow("", "-d", "--start-timeout="+brief())
	line := said()
	d.gaveUp(cmd, errs, givenUp(), "no progress for "+brief(), "rootfs", true)
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	awaitExit(t, pid)
	if err := os.Remove(filepath.Join(dir, "mke2fs")); err != nil {
		t.Fatal(err)
	}
	d.ok("restart", "slow")
	if r := d.clove("wait", "slow"); r.code != 0 {
		t.Errorf("control: exit %d\n%s", r.code, r.stderr)
	}
}

// TestADetachedStartThatCannotBeKilled: it is given up too, check reports what is left of it
// until it is gone, and other runs start meanwhile.
func TestADetachedStartThatCannotBeKilled(t *testing.T) {
	d := newCloved(t)
	group, freeze, thaw := freezer(t)
	dir, said := slowMaker(t, "echo $$ >"+group+"/cgroup.procs")
	d.settings = "starts_at_once: 1\n"
	d.withEnv("PATH=" + dir + ":" + os.Getenv("PATH"))
	cmd, errs := d.slow("", "-d", "--start-timeout=1s")
	line := said()
	freeze()
	d.gaveUp(cmd, errs, givenUp(), "no progress for 1s", "rootfs", true)
	d.namesStuck(line)
	if err := os.Remove(filepath.Join(dir, "mke2fs")); err != nil {
		t.Fatal(err)
	}
	d.detach("next", "true")
	if r := d.clove("wait", "next"); r.code != 0 {
		t.Errorf("the next run: exit %d\n%s", r.code, r.stderr)
	}
	d.endsThawed(thaw, line)
}

// unreadable is h with an /etc/hosts whose reads do not return. A run with the host's network
// reads it before it is registered.
func (h *host) unreadable() *host {
	h.t.Helper()
	fifo := filepath.Join(h.t.TempDir(), "hosts")
	thread, err := nsthread.Start(unix.CLONE_NEWNS)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(thread.Close)
	err = thread.Do(func() error {
		return errors.Join(unix.Mkfifo(fifo, 0o600), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""), unix.Mount(fifo, "/etc/hosts", "", unix.MS_BIND, ""))
	})
	if err != nil {
		h.t.Fatal(err)
	}
	there := *h
	there.inside = thread.Do
	return &there
}

// TestAStartThatHangsBeforeItIsKnown: such a foreground run is never registered. The control
// is the same start where nothing hangs.
func TestAStartThatHangsBeforeItIsKnown(t *testing.T) {
	h := newHost(t)
	there := h.unreadable()
	flags := []string{"--network=host", "--start-timeout=" + brief()}
	cmd, errs := there.slow("", flags...)
	h.gaveUp(cmd, errs, givenUp(), "no progress for "+brief(), "prepare", false)
	cmd, errs = there.slow("", "--network=host", "--start-timeout=1h")
	if exits(t, cmd.Process.Pid, time.Second/2) {
		t.Error("control: it ended by itself")
	}
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.gaveUp(cmd, errs, givenUp(), "SIGTERM came", "prepare", false)
	if r := h.agent(flags, "true"); r.code != 0 { // it also cleans up
		t.Errorf("control: exit %d\n%s", r.code, r.stderr)
	}
}

// TestADetachedStartThatHangsBeforeItIsKnown: it has a record, because cloved has stored the
// run.
func TestADetachedStartThatHangsBeforeItIsKnown(t *testing.T) {
	d := newCloved(t)
	here := d.host
	d.stop(unix.SIGTERM)
	d.host = here.unreadable()
	d.serve()
	cmd, errs := d.slow("", "-d", "--network=host", "--start-timeout="+brief())
	d.gaveUp(cmd, errs, givenUp(), "no progress for "+brief(), "prepare", true)
	d.stop(unix.SIGTERM)
	d.host = here
	d.serve()
	d.ok("restart", "slow")
	if r := d.clove("wait", "slow"); r.code != 0 {
		t.Errorf("control: exit %d\n%s", r.code, r.stderr)
	}
}

// TestAStartWaitsForNoLock: if another process holds the lock of the run directories for ever,
// the start is given up.
func TestAStartWaitsForNoLock(t *testing.T) {
	h := newHost(t)
	lock, err := os.Open(h.run)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	cmd, errs := h.slow("", "--start-timeout=1s")
	cmd.Wait()
	text, _ := os.ReadFile(errs)
	if cmd.ProcessState.ExitCode() != agent.ExitStartFailed || !strings.Contains(string(text), "no progress for 1s") || !strings.Contains(string(text), "register") {
		t.Errorf("exit %d\n%s", cmd.ProcessState.ExitCode(), text)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if r := h.agent(nil, "true"); r.code != 0 {
		t.Errorf("control: exit %d\n%s", r.code, r.stderr)
	}
}

// TestAnUnkillableProcessDelaysNoStart: the residue of a killed clove is cleaned up beside a
// foreground start, also if the new run has the same name. The control is gc, which names the
// process.
func TestAnUnkillableProcessDelaysNoStart(t *testing.T) {
	h := newHost(t)
	group, freeze, thaw := freezer(t)
	r, _ := h.keepBeating("dead")
	pid := h.inspect("dead").PID
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
	freeze()
	r.cmd.Process.Kill()
	r.cmd.Wait()
	soon := min(testhost.Patience(8*time.Second), 19*time.Second) // a process that cannot be killed was waited for 20 s
	for _, row := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"run", "--rm", "--", "true"}, 0, ""},
		{[]string{"run", "--rm", "--name=dead", "--", "true"}, agent.ExitStartFailed, "dead"},
	} {
		began := time.Now()
		next := h.clove(row.args...)
		if took := time.Since(began); next.code != row.code || !strings.Contains(next.stderr, row.says) || took > soon {
			t.Errorf("%v: exit %d after %s\n%s", row.args, next.code, took, next.stderr)
		}
	}
	if gc := h.clove("gc"); gc.code == 0 || !strings.Contains(gc.stderr, strconv.Itoa(pid)) {
		t.Errorf("control: gc: exit %d\n%s%s", gc.code, gc.stdout, gc.stderr)
	}
	h.endsThawed(thaw, strconv.Itoa(pid))
}
