package pidfd

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// sleeper starts a child that lives until it is killed, and returns its start time.
func sleeper(t *testing.T) (*exec.Cmd, uint64) {
	t.Helper()
	child := exec.Command(testhost.Tool(t, "sleep"), "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	start, err := StartTime(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return child, start
}

func TestAnIDWithoutAProcessIsGone(t *testing.T) {
	for name, pid := range map[string]int{"no process": 1<<22 + 1, "a thread's": testhost.Thread(t)} {
		if p, err := Open(pid); !Gone(err) {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	p, err := Open(os.Getpid())
	if err != nil || Gone(err) {
		t.Fatalf("this process: %v", err)
	}
	p.Close()
	for _, err := range []error{unix.EPERM, unix.EMFILE, unix.ENOSYS} {
		if Gone(err) {
			t.Errorf("%v tells nothing of the process", err)
		}
	}
}

// A pid alone identifies no process: the start time is needed, too.
func TestAnothersNumberIsGone(t *testing.T) {
	child, start := sleeper(t)
	p, err := OpenStarted(child.Process.Pid, start)
	if err != nil {
		t.Fatalf("the control: %v", err)
	}
	defer p.Close()
	if _, err := OpenStarted(child.Process.Pid, start+1); !Gone(err) {
		t.Errorf("another time: %v", err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if _, err := OpenStarted(child.Process.Pid, start); !Gone(err) {
		t.Errorf("reaped: %v", err)
	}
}

// The end is seen by a waiter, and by a later one; a wait that was given up does not affect
// the next one.
func TestTheEndOfAProcessIsSeen(t *testing.T) {
	child, _ := sleeper(t)
	p, err := Open(child.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if p.Ended() || p.Wait(canceled) || p.WaitFor(time.Millisecond) {
		t.Error("a living process is taken for dead")
	}
	waited := make(chan bool, 1)
	go func() { waited <- p.WaitFor(time.Minute) }()
	if err := p.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !<-waited {
		t.Error("a dead process is taken for alive")
	}
	for _, buried := range []bool{false, true} {
		if buried {
			_ = child.Wait()
		}
		if !p.Ended() || !p.WaitFor(time.Minute) || p.Signal(unix.SIGKILL) != nil {
			t.Errorf("reaped %v: it is alive", buried)
		}
	}
}
