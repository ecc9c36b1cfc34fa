//go:build root

package runtime

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/cgroups"
)

// strayIn starts what libcontainer leaves if the agent ends during an entry: a child of the
// launch thread in the sandbox's pid namespace, which clove has not registered.
func strayIn(t *testing.T, l *entrance) (pid int) {
	t.Helper()
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	born := func(in string) error {
		namespace, err := os.Open(in)
		if err != nil {
			return err
		}
		defer namespace.Close()
		return unix.Setns(int(namespace.Fd()), unix.CLONE_NEWPID)
	}
	err = l.thread.Do(func() error {
		if err := born(fmt.Sprintf("/proc/%d/ns/pid", l.box.pid)); err != nil {
			return err
		}
		process, err := os.StartProcess(program, []string{"sleep", "1000"}, &os.ProcAttr{})
		if err != nil {
			return err
		}
		pid = process.Pid
		process.Release()
		return born("/proc/self/ns/pid")
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestTheEndWaitsForNoStage: the agent's end reaps the stages of an entry that it cut short.
func TestTheEndWaitsForNoStage(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	l := a.s.entrance
	stray := strayIn(t, l)
	a.Stop(0)
	<-a.Live.ended
	for unix.Waitid(unix.P_PID, stray, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR { // clove-init's end kills the child
	}
	// Control: while the child is not reaped, clove-init cannot end, and the wait has a
	// limit.
	want := fmt.Sprintf("process %d (sleep, state Z (zombie), child of %d)", stray, os.Getpid())
	if err := l.box.reap(quiet); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	x := &execSession{live: a.Live, entrance: l, group: &cgroups.Below{}, orders: agentOrders(*a.s.spec, nil), pipes: newStreams(0)}
	defer x.pipes.abandon()
	if err := x.enter(); err == nil {
		t.Error("a process entered the ended sandbox")
	}
	a.ends()
}

// TestAnEntryThatFailsLeavesNoChild: every stage is killed and reaped.
func TestAnEntryThatFailsLeavesNoChild(t *testing.T) {
	a := startLive(t, "exec sleep 1000", nil)
	l := a.s.entrance
	guest := a.begin(t.Context(), "echo ready; exec sleep 1000")
	held := strayIn(t, l) // keeps clove-init from ending, and no process can enter meanwhile
	if err := unix.Kill(l.box.pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-a.Live.ended
	<-guest
	children := func() (pids []int) {
		if err := l.thread.Do(func() (err error) { pids, err = threadChildren(); return err }); err != nil {
			t.Fatal(err)
		}
		return pids
	}
	failed := func() error { // an entry without clove's clean-up
		process, err := l.box.processOf([]string{enterExecutable}, nil)
		if err != nil {
			return err
		}
		return l.box.container.Start(process)
	}
	if err := l.thread.Do(failed); err == nil {
		t.Fatal("control: a process entered the ended sandbox")
	}
	if got := children(); len(got) < 3 {
		t.Errorf("control: a failed entry alone leaves %v", got)
	}
	if err := l.thread.Do(l.box.reapStrays); err != nil {
		t.Error(err)
	}
	if got := children(); slices.Contains(got, held) || slices.ContainsFunc(got, func(pid int) bool { return pid != l.box.pid }) {
		t.Errorf("left: %v, clove-init is %d", got, l.box.pid)
	}
	a.ends()
}
