//go:build root

package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// The life of a detached agent from run -d to rm, and the effect of each command.
func TestDaemonLife(t *testing.T) {
	d := newCloved(t)
	id := d.detach("one", `trap 'echo term; exit 7' TERM; echo out; echo err >&2; while read x; do :; done`, "-i")
	if listed := d.ok("ps"); !strings.Contains(listed, id[:8]) || !strings.Contains(listed, "running") {
		t.Errorf("ps: %s", listed)
	}
	var run agent.Run
	if err := json.Unmarshal([]byte(d.ok("inspect", "one")), &run); err != nil || run.State != agent.StateRunning || string(run.Spec.ID) != id {
		t.Errorf("inspect: %v, %+v", err, run)
	}
	if pids := d.supervisors(); len(pids) != 1 {
		t.Errorf("supervisors: %v", pids)
	} else {
		wantNoInotify(t, pids[0])
	}
	follow := d.follow("logs", "-f", "one")
	if a, b := follow.line(), follow.line(); a+b != "outerr" && a+b != "errout" {
		t.Errorf("logs -f: %q, %q", a, b)
	}
	d.ok("stop", "-t", "30s", "one")
	if last := follow.line(); last != "term" {
		t.Errorf("logs -f: %q", last)
	}
	// The stop was requested, and the agent chose how to end; the record has both.
	if r := d.clove("wait", "one"); r.code != 7 || r.stdout != "7\n" {
		t.Errorf("wait: %d, %q, %s", r.code, r.stdout, r.stderr)
	}
	if err := json.Unmarshal([]byte(d.ok("inspect", "one")), &run); err != nil || run.Record.Status != agent.StatusExited ||
		run.Record.Stopped == nil || !strings.HasPrefix(run.Record.Stopped.By, "uid 0, process ") {
		t.Errorf("inspect: %v, %+v", err, run.Record)
	}
	if text := d.ok("logs", "--tail", "1", "one"); text != "term\n" {
		t.Errorf("logs --tail: %q", text)
	}
	d.ok("rename", "one", "two")
	d.ok("rm", "two")
	if r := d.clove("inspect", "two"); r.code == 0 {
		t.Errorf("it is still there: %s", r.stdout)
	}
	if _, err := os.Stat(filepath.Join(d.state, "logs", id)); !os.IsNotExist(err) {
		t.Errorf("its log is still there: %v", err)
	}
}

// A start with a limit that this host cannot enforce fails at once, with the reason.
func TestDaemonStartFails(t *testing.T) {
	d := newCloved(t)
	r := d.clove("run", "-d", "--name", "bad", "--", "/no/such/program")
	if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, "/no/such/program") {
		t.Errorf("%d, %s", r.code, r.stderr)
	}
	if r := d.clove("wait", "bad"); r.code != agent.ExitNotFound {
		t.Errorf("its record: %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// kill -9 of cloved: the agent is not affected, its output is kept, its limits apply, and the
// next cloved has it under the same id.
func TestDaemonKilled(t *testing.T) {
	d := newCloved(t)
	id := d.detach("survivor", `i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done`)
	d.detach("timed", `sleep 1000`, "--timeout", "2s")
	d.detach("brief", `sleep 1; exit 9`)
	before := d.ok("logs", "--tail", "1", "survivor")
	d.stop(unix.SIGKILL)
	// An agent that is due to end without cloved does end; its supervisor holds its lock until
	// then.
	for _, name := range []string{"timed", "brief"} {
		waitUnlocked(t, d, name)
	}
	d.serve()
	var run agent.Run
	if err := json.Unmarshal([]byte(d.ok("inspect", "survivor")), &run); err != nil || run.State != agent.StateRunning || string(run.Spec.ID) != id {
		t.Errorf("%v, %+v", err, run)
	}
	if r := d.clove("wait", "timed"); r.code != agent.ExitTimeout {
		t.Errorf("the deadline: %d, %s", r.code, r.stderr)
	}
	if r := d.clove("wait", "brief"); r.code != 9 {
		t.Errorf("the exit: %d, %s", r.code, r.stderr)
	}
	lines := strings.Fields(d.ok("logs", "survivor"))
	for i, line := range lines {
		if line != fmt.Sprint(i+1) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	if len(lines) <= len(strings.Fields(before)) {
		t.Errorf("%d lines", len(lines))
	}
	d.ok("kill", "survivor")
	if r := d.clove("wait", "survivor"); r.code != agent.ExitKilled {
		t.Errorf("%d", r.code)
	}
}

// waitUnlocked waits for the end of a run without a daemon: the test gets the run's lock when
// its supervisor has ended.
func waitUnlocked(t *testing.T, d *cloved, name string) {
	t.Helper()
	var run agent.Run
	if err := json.Unmarshal([]byte(d.ok("inspect", name)), &run); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Open(filepath.Join(d.run, string(run.Spec.ID), "lock"))
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for {
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_SH); err != unix.EINTR {
			return
		}
	}
}

// If a supervisor dies, its agent dies too; cloved cleans up and stores a record that says so,
// and the policy starts the run again.
func TestDaemonSupervisorKilled(t *testing.T) {
	d := newCloved(t)
	d.detach("mortal", `echo born; sleep 1000`)
	d.detach("phoenix", `echo born; sleep 1000`, "--restart", "always")
	c, err := client.Dial(context.Background(), d.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	for _, name := range []string{"mortal", "phoenix"} {
		found, err := client.Do(ctx, c, methods.RunGet, api.RunParams{Run: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(found.Run.Lease.SupervisorPID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	result, err := client.Do(ctx, c, methods.RunWait, api.RunParams{Run: "mortal"})
	if err != nil || result.Record.Status != agent.StatusKilled || result.Record.Error == nil {
		t.Errorf("%v, %+v", err, result.Record)
	}
	// The events show the second start of the run named phoenix.
	again, leave := context.WithCancel(ctx)
	defer leave()
	starts := 0
	_, err = client.Each(again, c, methods.EventFollow, api.EventParams{After: new(uint64), Follow: true, Run: "phoenix"}, func(note api.EventNote) error {
		if note.Event.Kind == agent.RunStarted {
			if starts++; starts == 2 {
				leave()
			}
		}
		return nil
	})
	if starts != 2 {
		t.Errorf("%d starts, %v", starts, err)
	}
}

// Files that cloved was started with are not open in its supervisors. The control is cloved.
func TestDaemonKeepsItsDescriptors(t *testing.T) {
	d := newCloved(t)
	d.detach("plain", "sleep 1000")
	c, err := client.Dial(context.Background(), d.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found, err := client.Do(context.Background(), c, methods.RunGet, api.RunParams{Run: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		pid  int
		want bool
	}{{d.cmd.Process.Pid, true}, {found.Run.Lease.SupervisorPID, false}} {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", row.pid))
		if err != nil || len(links) < 3 {
			t.Fatalf("%d descriptors, %v", len(links), err)
		}
		has := slices.ContainsFunc(links, func(link string) bool { target, _ := os.Readlink(link); return target == inherited })
		if has != row.want {
			t.Errorf("process %d has it: %v", row.pid, has)
		}
	}
}

// A second daemon would start everything twice, so it is refused.
func TestDaemonSecondIsRefused(t *testing.T) {
	d := newCloved(t)
	out, err := exec.Command(filepath.Join(d.bin, "cloved"), "--root", d.state, "--run-dir", d.run, "--config", d.config(), "--socket", filepath.Join(d.run, "other.sock")).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another cloved") || !strings.Contains(string(out), "hint:") {
		t.Errorf("%v, %s", err, out)
	}
	if d.ok("ps") == "" {
		t.Error("the first one is disturbed")
	}
}

// SIGTERM ends cloved and no agent.
func TestDaemonEndsAlone(t *testing.T) {
	d := newCloved(t)
	d.detach("stays", `sleep 1000`)
	d.stop(unix.SIGTERM)
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if _, err := os.Stat(d.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
	// Without cloved, root's commands read the store themselves.
	if listed := d.ok("ps"); !strings.Contains(listed, "stays") || !strings.Contains(listed, "running") {
		t.Errorf("%s", listed)
	}
	began := time.Now()
	d.serve()
	if took := time.Since(began); took > patience() {
		t.Errorf("the start took %v", took)
	}
	d.ok("stop", "stays")
}

// following is a command whose output is read line by line.
type following struct {
	d     *cloved
	lines *bufio.Reader
}

func (d *cloved) follow(args ...string) *following {
	d.t.Helper()
	return d.followFor(patience(), args...)
}

// followFor is follow with a longer time limit.
func (d *cloved) followFor(limit time.Duration, args ...string) *following {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	cmd := d.command(ctx, args...)
	read, write, err := os.Pipe()
	if err != nil {
		d.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	write.Close()
	d.t.Cleanup(func() { cancel(); cmd.Wait(); read.Close() })
	return &following{d, bufio.NewReader(read)}
}

func (f *following) line() string {
	f.d.t.Helper()
	text, err := f.lines.ReadString('\n')
	if err != nil {
		f.d.t.Fatalf("no line: %v", err)
	}
	return strings.TrimSpace(text)
}
