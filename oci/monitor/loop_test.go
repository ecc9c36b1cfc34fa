package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/boottime"
)

// patience bounds events that come at once.
const patience = 30 * time.Second

func newTestAlarm(t *testing.T) *boottime.Alarm {
	t.Helper()
	a, err := boottime.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// holding is a monitor in this process, of a child without a cgroup of its own.
func holding(t *testing.T, o order) (m *monitor, kept order) {
	t.Helper()
	cmd, process, start := begun(t, "exec sleep 1000")
	directory := t.TempDir()
	held, err := lock(directory)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { held.Close() })
	group, err := cgroups.OpenBundle(map[string]string{"": "/sys/fs/cgroup/clove-no-such-cgroup"})
	if err != nil {
		t.Fatal(err)
	}
	host, err := cgroups.Detect()
	if err != nil {
		t.Fatal(err)
	}
	o.Version, o.Phase, o.ID, o.Pid, o.PidStart = orderVersion, phaseCreated, "one", cmd.Process.Pid, start
	if err := o.save(directory); err != nil {
		t.Fatal(err)
	}
	m = newMonitor(directory, held, o)
	m.group, m.host, m.process, m.alarm = group, host, process, newTestAlarm(t)
	return m, o
}

// account calls conclude, and steps until the record is written and reported.
func (m *monitor) account(e end) {
	m.conclude(e)
	for !m.accounted() {
		m.step()
	}
}

// serveTest starts the monitor's socket and its loop; the channel is closed after its end.
func serveTest(t *testing.T, m *monitor) <-chan struct{} {
	t.Helper()
	listener, err := listen(m.directory, m.calls)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	done := make(chan struct{})
	go func() { defer close(done); m.run() }()
	return done
}

func expectDone(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the monitor does not end")
	}
}

func TestAMonitorCountsFromTheStart(t *testing.T) {
	m, _ := holding(t, order{Limits: agent.Limits{WallClock: time.Millisecond}})
	done := serveTest(t, m)
	if err := ask(m.directory, "dance", patience); err == nil || !strings.Contains(err.Error(), "dance") {
		t.Errorf("it knows every word: %v", err)
	}
	if err := ask(m.directory, verbStart, patience); err != nil {
		t.Fatal(err)
	}
	expectDone(t, done)
	o, _, err := readOrder(m.directory)
	if err != nil || o.Phase != phaseEnded || o.Deadline != o.StartedAt+time.Millisecond {
		t.Errorf("%v, %+v", err, o)
	}
}

// TestAStartMayBeAskedAgain: the first caller may have been killed before the container
// executed. The deadline counts from the first call.
func TestAStartMayBeAskedAgain(t *testing.T) {
	m, _ := holding(t, order{Limits: agent.Limits{WallClock: time.Hour}})
	done := serveTest(t, m)
	var first order
	for try := range 2 {
		if err := ask(m.directory, verbStart, patience); err != nil {
			t.Fatal(err)
		}
		o, _, err := readOrder(m.directory)
		if try == 0 {
			first = o
		}
		if err != nil || o.Deadline == 0 || !reflect.DeepEqual(o, first) {
			t.Errorf("%v, %+v became %+v", err, first, o)
		}
	}
	if err := m.process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	expectDone(t, done)
}

// TestAnAccountIsMadeOnce: a monitor wrote the record and died before it stored that. The next
// one, which did not see the end, does not replace the record. For another start it writes
// what it knows.
func TestAnAccountIsMadeOnce(t *testing.T) {
	m, _ := holding(t, order{Record: filepath.Join(t.TempDir(), "one.json")})
	if err := m.order.start(time.Now(), time.Second); err != nil {
		t.Fatal(err)
	}
	started := m.order
	m.account(end{status: exited(3), at: time.Now(), boot: 2 * time.Second})
	for _, row := range []struct {
		name   string
		later  time.Duration
		status agent.Status
	}{{"the same", 0, agent.StatusExited}, {"another", time.Nanosecond, agent.StatusKilled}} {
		if err := started.save(m.directory); err != nil {
			t.Fatal(err)
		}
		next, _, err := readOrder(m.directory)
		if err != nil {
			t.Fatal(err)
		}
		m.order = next
		m.order.Started = next.Started.Add(row.later)
		m.account(end{unknown: errUnheld})
		if got := recordIn(t, m.order.Record); got.Status != row.status || m.order.Phase != phaseEnded {
			t.Errorf("%s: %s %d, %s", row.name, got.Status, got.ExitCode, m.order.Phase)
		}
	}
}

// TestOnlyWhatLivesExpires: if a process ended before the deadline, while it had no monitor,
// the deadline is not the cause of its end.
func TestOnlyWhatLivesExpires(t *testing.T) {
	for name, row := range map[string]struct {
		edit func(m *monitor) error
		want phase
	}{
		"it lives": {func(*monitor) error { return nil }, phaseExpired},
		"a zombie": {func(m *monitor) error {
			defer m.process.Wait(context.Background())
			return m.process.Signal(unix.SIGKILL)
		}, phaseStarted},
		"gone": {func(m *monitor) error { m.process = nil; return nil }, phaseStarted},
	} {
		m, _ := holding(t, order{})
		m.order.Phase = phaseStarted
		if err := row.edit(m); err != nil {
			t.Fatal(err)
		}
		m.expire()
		if m.order.Phase != row.want {
			t.Errorf("%s: %s", name, m.order.Phase)
		}
	}
}

// TestTheDirectoryIsTheClaim: after a container was removed without its monitor, another
// container may use its cgroup.
func TestTheDirectoryIsTheClaim(t *testing.T) {
	m, _ := holding(t, order{})
	if !m.owns() {
		t.Error("it does not know its own directory")
	}
	if err := os.Remove(filepath.Join(m.directory, lockName)); err != nil {
		t.Fatal(err)
	}
	if m.owns() {
		t.Error("it owns what is gone")
	}
	other, err := lock(m.directory)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if m.owns() {
		t.Error("it owns what is another's")
	}
}

func TestNobodyAnswersWithoutAMonitor(t *testing.T) {
	directory := t.TempDir()
	if err := ask(directory, verbStart, patience); !errors.Is(err, errNobody) {
		t.Errorf("no socket: %v", err)
	}
	// A delete that removes the directory at this time needs it empty.
	if left, err := os.ReadDir(directory); err != nil || len(left) != 0 {
		t.Errorf("who asked left %v, %v", left, err)
	}
	calls := make(chan pendingRequest)
	listener, err := listen(directory, calls)
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := ask(directory, verbStart, patience); !errors.Is(err, errNobody) {
		t.Errorf("a dead one's socket: %v", err)
	}
	if err := ask(filepath.Join(directory, "none"), verbStart, patience); err == nil || errors.Is(err, errNobody) {
		t.Errorf("no directory: %v", err)
	}
}

// TestAMonitorThatIsOnlyBegunIsWaitedFor: it holds the lock, which the caller checks, before it
// listens.
func TestAMonitorThatIsOnlyBegunIsWaitedFor(t *testing.T) {
	directory := t.TempDir()
	held, err := lock(directory)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	looks, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.InotifyAddWatch(looks, held.Name(), unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	asked, looked := make(chan error, 1), make(chan error, 1)
	go func() { asked <- ask(directory, verbStart, patience) }()
	go func() { _, err := unix.Read(looks, make([]byte, 4096)); looked <- err }()
	select {
	case err := <-asked:
		t.Fatalf("it did not wait: %v", err)
	case err := <-looked:
		if err != nil {
			t.Fatal(err)
		}
	}
	unix.Close(looks)
	calls := make(chan pendingRequest)
	listener, err := listen(directory, calls)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { c := <-calls; c.answer <- nil }()
	if err := <-asked; err != nil {
		t.Error(err)
	}
}

// TestASocketFitsEverywhere: a socket's address has room for 108 bytes.
func TestASocketFitsEverywhere(t *testing.T) {
	directory := filepath.Join(t.TempDir(), strings.Repeat("x", 150))
	if err := os.Mkdir(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds the socket of the first
		calls := make(chan pendingRequest)
		listener, err := listen(directory, calls)
		if err != nil {
			t.Fatal(err)
		}
		go func() { c := <-calls; c.answer <- errors.New("heard " + c.verb) }()
		if err := ask(directory, verbStart, patience); err == nil || err.Error() != "heard start" {
			t.Error(err)
		}
		listener.Close()
	}
}

func TestAMonitorIsStartedByCloveOnly(t *testing.T) {
	if _, err := arm(t.TempDir(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it holds nothing: %v", err)
	}
}
