//go:build root

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/testhost"
	"golang.org/x/sys/unix"
)

// deaf is a process tree that SIGTERM does not end: a shell that ignores it, an orphaned
// grandchild in a session of its own, and a stopped process.
const deaf = `
	trap '' TERM HUP INT
	(setsid /bin/sh -c 'trap "" TERM; while :; do sleep 1000; done' &)
	sleep 1000 & kill -STOP $!
	echo ready
	while :; do sleep 1000; done`

func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		name, script string
		clock, grace time.Duration    // clock 0: it expires soon after the script prints "ready"
		want         initproto.Exited // Leftover: at least
	}{
		{"obeys", "exec sleep 1000", 200 * time.Millisecond, time.Hour,
			initproto.Exited{Code: -1, Signal: unix.SIGTERM}},
		{"ends by itself on TERM", `trap 'exit 3' TERM; sleep 1000 & echo ready; wait`, 0, time.Hour,
			initproto.Exited{Code: 3}},
		{"stopped, obeys once awake", `kill -STOP $$; exec sleep 1000`, 200 * time.Millisecond, time.Hour,
			initproto.Exited{Code: -1, Signal: unix.SIGTERM}},
		{"deaf tree", deaf, 0, 100 * time.Millisecond,
			initproto.Exited{Code: -1, Signal: unix.SIGKILL, Leftover: 2}},
		{"no grace", deaf, 0, 0,
			initproto.Exited{Code: -1, Signal: unix.SIGKILL, Leftover: 2}},
		// The fork bomb begins in a child: a shell that cannot fork ends.
		{"fork bomb", `trap '' TERM; b() { b & b & }; (b); echo ready; while :; do :; done`, 0, 50 * time.Millisecond,
			initproto.Exited{Code: -1, Signal: unix.SIGKILL}},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders := shell(c.script)
			orders.WallClock, orders.StopGrace = c.clock, c.grace
			orders.Rlimits = append(orders.Rlimits, initproto.Rlimit{Name: "nproc", Soft: 40, Hard: 40})
			b := start(t, orders)
			started := b.started()
			if c.clock == 0 {
				b.expect("ready")
				b.endSoon(started)
			}
			got := b.exited()
			allowed := c.clock
			if c.want.Signal == unix.SIGKILL {
				allowed += c.grace
			}
			if got.ExecutedNS < int64(allowed) || got.ExecutedNS > got.WallNS+int64(patience) {
				t.Errorf("it executed until %v", time.Duration(got.ExecutedNS))
			}
			if got.WallNS < int64(c.clock) || got.Leftover < c.want.Leftover {
				t.Errorf("after %v with %d left over", time.Duration(got.WallNS), got.Leftover)
			}
			c.want.Cause, c.want.WallNS, c.want.ExecutedNS, c.want.Leftover = initproto.CauseDeadline, got.WallNS, got.ExecutedNS, got.Leftover
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestStop is also the control of the deaf tree: neither SIGTERM nor a stop ends it within the
// grace period; a stop with a shorter grace period does.
func TestStop(t *testing.T) {
	b := start(t, shell(deaf))
	b.started()
	b.expect("ready")
	b.send(initproto.Message{Signal: &initproto.Signal{Number: unix.SIGTERM}})
	b.send(initproto.Message{Stop: &initproto.Stop{Grace: time.Hour}})
	check(t, b.conn.SetReceiveDeadline(time.Now().Add(200*time.Millisecond)))
	if m, err := b.conn.Receive(); err == nil {
		t.Fatalf("the tree is not deaf: %+v", m)
	}
	b.send(initproto.Message{Stop: &initproto.Stop{Grace: 50 * time.Millisecond}})
	b.send(initproto.Message{Stop: &initproto.Stop{Grace: time.Hour}}) // cannot extend it
	if got := b.exited(); got.Cause != initproto.CauseStop || got.Signal != unix.SIGKILL || got.Leftover < 2 {
		t.Errorf("got %+v", got)
	}
}

// TestStopKeepsTheGraceOfTheOthers: the agent's shell ends at once, and its child needs a
// moment for its last output.
func TestStopKeepsTheGraceOfTheOthers(t *testing.T) {
	b := start(t, shell(`
		/bin/sh -c 'trap "sleep 0.2; echo last words; exit" TERM; echo ready; while :; do sleep 0.01; done' 2>/dev/null &
		wait`))
	b.started()
	b.expect("ready")
	b.send(initproto.Message{Stop: &initproto.Stop{Grace: time.Hour}})
	b.expect("last words")
	if got := b.exited(); got.Signal != unix.SIGTERM || got.Cause != initproto.CauseStop || got.Leftover != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestLifeline: if the supervisor ends, everything inside is killed, and the exit file says
// so.
func TestLifeline(t *testing.T) {
	for name, lose := range map[string]func(*box){
		"closed":       func(b *box) { b.conn.Close() },
		"out of order": func(b *box) { b.send(initproto.Message{Orders: &initproto.Orders{}}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := start(t, shell(deaf))
			b.started()
			b.expect("ready")
			lose(b)
			if err := b.await(); err != nil {
				t.Errorf("clove-init: %v", err)
			}
			m := b.readExit()
			if m.Exited == nil || m.Exited.Cause != initproto.CauseLifeline || m.Exited.Signal != unix.SIGKILL {
				t.Errorf("exit file has %+v", m.Exited)
			}
		})
	}
}

// TestLifelineBeforeOrders: PID 1 does not wait for orders without a supervisor.
func TestLifelineBeforeOrders(t *testing.T) {
	testhost.Root(t)
	b := prepare(t, nil)
	b.conn.Close()
	if err := b.await(); err == nil {
		t.Error("clove-init calls that a success")
	}
}

// TestParentThreadDies: PID 1 clears the parent-death signal of the launch, so a thread of the
// supervisor may end; only the control socket counts.
func TestParentThreadDies(t *testing.T) {
	b := start(t, shell("exec sleep 1000"))
	b.started()
	// The control has the same parent thread and keeps the signal.
	control := &exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "1000"},
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}}
	check(t, b.startChild(control))
	b.endThread()
	if err := control.Wait(); err == nil {
		t.Error("the control did not die with its parent thread")
	}
	// PID 1 answers, so it got no SIGKILL before this message.
	b.send(initproto.Message{Stop: &initproto.Stop{Grace: time.Hour}})
	if got := b.exited(); got.Cause != initproto.CauseStop || got.Signal != unix.SIGTERM {
		t.Errorf("got %+v", got)
	}
}

// TestPidsLimitCannotStopTheDeadline: an agent that uses all processes of its cgroup leaves
// none for a new thread of PID 1, which must not need one.
func TestPidsLimitCannotStopTheDeadline(t *testing.T) {
	orders := shell(`trap '' TERM; (while :; do sleep 1000 & done) & while :; do :; done`)
	orders.WallClock, orders.StopGrace = time.Hour, 50*time.Millisecond
	testhost.Root(t)
	testhost.NoResidue(t)
	group := pidsGroup(t, 40)
	b := prepare(t, nil)
	check(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Appendf(nil, "%d", b.process.Process.Pid), 0o600))
	b.send(initproto.Message{Orders: &orders})
	started := b.started()
	for until := time.Now().Add(testhost.Patience(patience)); ; {
		events, err := os.ReadFile(filepath.Join(group, "pids.events"))
		if check(t, err); strings.TrimSpace(string(events)) != "max 0" {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the limit is never reached: the test proves nothing")
		}
	}
	b.endSoon(started)
	if got := b.exited(); got.Cause != initproto.CauseDeadline || got.Leftover < 20 {
		t.Errorf("got %+v", got)
	}
	// The limit is removed only after the end of the sandbox, so the sandbox ends here.
	b.await()
}

// pidsGroup creates a cgroup with a pids limit below this process's own.
func pidsGroup(t *testing.T, limit int) string {
	t.Helper()
	parent := "/sys/fs/cgroup/pids" // v1 and hybrid
	if testhost.Cgroup() == testhost.CgroupV2 {
		parent = "/sys/fs/cgroup"
		check(t, os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+pids"), 0o600))
	}
	group, err := os.MkdirTemp(parent, "clove-init-test-")
	check(t, err)
	t.Cleanup(func() { check(t, unix.Rmdir(group)) })
	check(t, os.WriteFile(filepath.Join(group, "pids.max"), fmt.Appendf(nil, "%d", limit), 0o600))
	return group
}
