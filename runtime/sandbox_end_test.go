package runtime

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs"
)

// TestStraysAreTakenAway: dead or alive; registered processes are left alone.
func TestStraysAreTakenAway(t *testing.T) {
	// Not parallel: the kernel gives the children of a thread that ends, another test's, to any other thread.
	thread, err := nsthread.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	defer thread.Close()
	child := func(command ...string) *exec.Cmd {
		c := exec.Command(command[0], command[1:]...)
		if err := thread.Do(c.Start); err != nil {
			t.Fatal(err)
		}
		return c
	}
	known, init := child("sleep", "1000"), child("sleep", "1000")
	defer func() {
		for _, c := range []*exec.Cmd{known, init} {
			c.Process.Kill()
			c.Wait()
		}
	}()
	dead, alive := child("true"), child("sleep", "1000")
	for unix.Waitid(unix.P_PID, dead.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
	children := func() (pids []int) {
		if err := thread.Do(func() (err error) { pids, err = threadChildren(); return err }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(pids)
		return pids
	}
	all := []int{known.Process.Pid, init.Process.Pid, dead.Process.Pid, alive.Process.Pid}
	slices.Sort(all)
	if got := children(); !slices.Equal(got, all) {
		t.Fatalf("control: the thread has %v, not %v", got, all)
	}
	box := &sandbox{pid: init.Process.Pid, entered: map[int]bool{known.Process.Pid: true}}
	if err := thread.Do(box.reapStrays); err != nil {
		t.Fatal(err)
	}
	left := []int{known.Process.Pid, init.Process.Pid}
	slices.Sort(left)
	if got := children(); !slices.Equal(got, left) {
		t.Errorf("the thread has %v, not %v", got, left)
	}
}

// TestAnExecSessionDoesNotDelayTheEnd: an exec session that does not end is reported, and what
// it may still use is not removed. The control is a session that ends.
func TestAnExecSessionDoesNotDelayTheEnd(t *testing.T) {
	t.Parallel()
	l, tookBack := &launch{tree: new(rootfs.Tree)}, false
	l.undo.Add("what a guest uses", func() error { tookBack = true; return nil })
	l.sessions.Add(1)
	if err := l.endSessions(time.Millisecond); err == nil {
		t.Error("an exec session that does not end was not reported")
	}
	if !l.keepsLayer() {
		t.Error("the layer that it may use goes")
	}
	if err := l.undo.Run(); err != nil || tookBack {
		t.Errorf("removed under an exec session: %v, %v", tookBack, err)
	}
	l.undo.Add("an unused resource", func() error { tookBack = true; return nil })
	l.sessions.Done()
	if err := l.endSessions(soon); err != nil {
		t.Error(err)
	}
	if err := l.undo.Run(); err != nil || !tookBack {
		t.Errorf("control: not taken back: %v", err)
	}
}
