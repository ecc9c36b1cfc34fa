//go:build root

package monitor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/internal/testhost"
)

// heard is a process that waits for a line, and a listener for its end.
func heard(t *testing.T, script string) (l *listener, cmd *exec.Cmd, process *pidfd.Process, proceed func()) {
	t.Helper()
	cmd = exec.Command("sh", "-c", "ulimit -c 0; read line; "+script)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if process, err = pidfd.Open(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	if l, err = listenEnds(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.close() })
	return l, cmd, process, func() { _, _ = stdin.Write([]byte("\n")) }
}

// TestTheAccountIsWhatTheParentSees: for each kind of end. If there are two readings, the
// status is unknown.
func TestTheAccountIsWhatTheParentSees(t *testing.T) {
	testhost.Root(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, unknown := range map[string]error{
		"exit 0": nil, "exit 7": nil, "exit 255": nil, "kill -9 $$": nil, "kill -SEGV $$": nil, "exec sh -c 'exit 3'": nil,
		"a thread before": nil, "another program": nil, "a signal": nil, "the first before, alike": nil, "the first before": errEndTwice,
	} {
		script := name
		if roles[name] != nil {
			script = "exec env '" + role + "=" + name + "' " + self
		}
		l, cmd, process, proceed := heard(t, script)
		proceed()
		l.until(process)
		got, err := l.ends.status()
		_ = cmd.Wait()
		want := unix.WaitStatus(cmd.ProcessState.Sys().(syscall.WaitStatus))
		if !errors.Is(err, unknown) || err == nil && got != want {
			t.Errorf("%s: %#x, %v; the parent has %#x", name, got, err, want)
		}
	}
}

// bomb ends more processes than a small queue has room for.
const bomb = "i=0; while [ $i -lt 500 ]; do (exit 1); i=$((i+1)); done"

// TestABombElsewhereIsNotHeard: it overflows the queue of a listener without the filter, which
// then reports an unknown status.
func TestABombElsewhereIsNotHeard(t *testing.T) {
	testhost.Root(t)
	for name, row := range map[string]struct {
		filter bool
		want   error
	}{"with the filter": {true, nil}, "without": {false, errEndLost}} {
		l, cmd, process, proceed := heard(t, "exit 7")
		if err := unix.SetsockoptInt(l.fd(), unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
			t.Fatal(err)
		}
		if !row.filter {
			if err := unix.SetsockoptInt(l.fd(), unix.SOL_SOCKET, unix.SO_DETACH_FILTER, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := exec.Command("sh", "-c", bomb).Run(); err != nil {
			t.Fatal(err)
		}
		proceed()
		l.until(process)
		_ = cmd.Wait()
		if got, err := l.ends.status(); !errors.Is(err, row.want) || err == nil && got != exited(7) {
			t.Errorf("%s: %#x, %v", name, got, err)
		}
	}
}

func TestTheAccountIsTriedFirst(t *testing.T) {
	testhost.Root(t)
	if from, err := findSource(sourceTaskstats, sourcePidfd); from != sourceTaskstats || err != nil {
		t.Errorf("%s, %v", from, err)
	}
}

// TestARecordByTheAccount: the whole monitor, with the source of an older kernel, and a
// monitor that began too late for the message.
func TestARecordByTheAccount(t *testing.T) {
	testhost.Root(t)
	for name, late := range map[string]bool{"in time": false, "too late": true} {
		path := filepath.Join(t.TempDir(), "one.json")
		m, _ := holding(t, order{Record: path, Source: sourceTaskstats})
		if late {
			if err := m.process.Signal(unix.SIGTERM); err != nil {
				t.Fatal(err)
			}
			m.process.Wait(context.Background())
		}
		if err := m.listen(); err != nil {
			t.Fatal(err)
		}
		m.order.Phase = phaseStarted
		if err := m.process.Signal(unix.SIGTERM); err != nil && !late {
			t.Fatal(err)
		}
		expectDone(t, serveTest(t, m))
		var got agent.Record
		readJSON(t, path, &got)
		if !late && (got.Status != agent.StatusSignaled || *got.Signal != "SIGTERM" || got.Error != nil) {
			t.Errorf("%s: %+v", name, got)
		}
		if late && (got.Status != agent.StatusKilled || got.Error == nil || m.listener != nil) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAnEndThatIsNotToldIsNotGuessed: the record says that the status is unknown.
func TestAnEndThatIsNotToldIsNotGuessed(t *testing.T) {
	testhost.Root(t)
	path := filepath.Join(t.TempDir(), "one.json")
	m, _ := holding(t, order{Record: path, Source: sourceTaskstats})
	if err := m.listen(); err != nil {
		t.Fatal(err)
	}
	m.listener.ends.lost = true
	m.order.Phase = phaseStarted
	if err := m.process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expectDone(t, serveTest(t, m))
	var got agent.Record
	readJSON(t, path, &got)
	if got.Status != agent.StatusKilled || got.Signal != nil || got.Error == nil || got.Error.Message != errEndLost.Error() {
		t.Errorf("%+v", got)
	}
}
