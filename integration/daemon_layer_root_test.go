//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// counting is an agent that counts its starts in a file in its workspace.
const counting = `exec 2>/dev/null; echo x >>/workspace/starts; wc -l </workspace/starts; `

// A restart continues with the agent's files: by hand and by policy, after a kill too, in any
// range of ids; clove diff shows them before and after. The control is --fresh, which begins
// with 1.
func TestDaemonRestartKeepsFiles(t *testing.T) {
	d := newCloved(t)
	d.detach("one", counting+`trap 'exit 0' TERM; while :; do sleep 0.05; done`, "--label", "a=b")
	follow := d.follow("logs", "-f", "one")
	count := func(want string) {
		t.Helper()
		if line := strings.TrimSpace(follow.line()); line != want {
			t.Fatalf("it has started %q times, want %s", line, want)
		}
	}
	count("1")
	// Another agent takes the lowest range of ids as soon as it is free.
	d.ok("stop", "one")
	d.detach("other", `sleep 1000`)
	if text := d.ok("diff", "one"); !strings.Contains(text, "A /workspace/starts") {
		t.Errorf("diff: %s", text)
	}
	ranges := func(name string) int {
		var run agent.Run
		if err := json.Unmarshal([]byte(d.ok("inspect", name)), &run); err != nil || run.Lease == nil {
			t.Fatalf("%v, %+v", err, run)
		}
		return run.Lease.IDRange
	}
	follow = d.restarted(t, "one")
	count("2")
	if ranges("one") == ranges("other") {
		t.Error("two agents have one range")
	}
	d.ok("kill", "one")
	d.clove("wait", "one") // exit status 137
	follow = d.restarted(t, "one")
	count("3")
	d.ok("stop", "one")
	if text := d.ok("diff", "one"); !strings.Contains(text, "A /workspace/starts") {
		t.Errorf("diff after: %s", text)
	}
	follow = d.restarted(t, "one", "--fresh")
	count("1")
	d.ok("rm", "-f", "one", "other")
	if left, _ := filepath.Glob(filepath.Join(d.state, "layers", "*")); len(left) > 0 {
		t.Errorf("layers are left: %q", left)
	}
}

// restarted restarts a run and follows its log from then on.
func (d *cloved) restarted(t *testing.T, name string, flags ...string) *following {
	t.Helper()
	before := len(strings.Fields(d.ok("logs", name)))
	d.ok(append(append([]string{"restart"}, flags...), name)...)
	f := d.follow("logs", "-f", name)
	for range before {
		f.line()
	}
	return f
}

// If a supervisor is killed, the next start has its agent's files, although the kernel
// unmounts the layer only after the processes have ended.
func TestDaemonRestartAfterAKillKeepsFiles(t *testing.T) {
	d := newCloved(t)
	d.detach("phoenix", counting+`sleep 1000`, "--restart", "always")
	follow := d.follow("logs", "-f", "phoenix")
	for _, want := range []string{"1", "2", "3"} {
		if line := strings.TrimSpace(follow.line()); line != want {
			t.Fatalf("it has started %q times, want %s", line, want)
		}
		if want == "3" {
			break
		}
		var run agent.Run
		if err := json.Unmarshal([]byte(d.ok("inspect", "phoenix")), &run); err != nil || run.Lease == nil {
			t.Fatalf("%v, %+v", err, run)
		}
		if err := unix.Kill(run.Lease.SupervisorPID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	d.ok("rm", "-f", "phoenix")
	if _, err := os.Stat(filepath.Join(d.state, "clove.db")); err != nil {
		t.Error(err)
	}
}

// A schedule starts a run at its time, ps shows the next time, a kill of cloved does not
// change it, and a stop ends it.
func TestDaemonSchedule(t *testing.T) {
	d := newCloved(t)
	// A time far enough away that the test can look at the run before it, and that comes once.
	at := time.Now().Add(testhost.Patience(2 * time.Second)).Truncate(time.Minute).Add(time.Minute)
	id := d.detach("daily", counting+`exit 0`, "--schedule", fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour()))
	if ps := d.ok("ps"); !strings.Contains(ps, "NEXT") || !strings.Contains(ps, "queued") {
		t.Errorf("ps: %s", ps)
	}
	d.stop(unix.SIGKILL)
	d.serve()
	events := d.followFor(time.Until(at)+patience(), "events", "--after", "0")
	ends := 0
	for ends == 0 {
		if line := events.line(); strings.Contains(line, "daily") && strings.Contains(line, "ended") {
			ends++
		}
	}
	if text := d.ok("logs", "daily"); strings.TrimSpace(text) != "1" {
		t.Errorf("logs: %q", text)
	}
	if text := d.ok("diff", id); !strings.Contains(text, "A /workspace/starts") {
		t.Errorf("diff between two times: %s", text)
	}
	d.ok("stop", "daily")
	if ps := d.ok("ps", "-a"); strings.Contains(ps, "queued") {
		t.Errorf("after its stop: %s", ps)
	}
	for _, bad := range []string{"every day", "61 * * * *", "0 0 30 2 *"} {
		r := d.clove("run", "-d", "--schedule", bad, "--", "true")
		if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, "is not a schedule") || !strings.Contains(r.stderr, "hint:") {
			t.Errorf("%q: %d, %s", bad, r.code, r.stderr)
		}
	}
}
