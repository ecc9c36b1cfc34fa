package monitor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/rpc"
)

// within fails the test if f hangs.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("it hangs: %s", what)
	}
}

// TestADiskThatHangsHoldsUpNothingElse: neither the deadline of processes that outlived the
// first one, nor callers' requests.
func TestADiskThatHangsHoldsUpNothingElse(t *testing.T) {
	directory := t.TempDir()
	m, _ := holding(t, order{Record: filepath.Join(directory, "one.json")})
	m.order.Phase = phaseStarted
	disk := filepath.Join(directory, temporaryName(m.directory))
	if err := unix.Mkfifo(disk, 0o600); err != nil { // without a reader, opening it for writing hangs
		t.Fatal(err)
	}
	within(t, "the end", func() { m.conclude(end{status: exited(3), at: time.Now()}) })
	fired := make(chan struct{})
	close(fired)
	m.fired = fired
	within(t, "the deadline", m.step)
	if m.fired != nil || m.accounted() {
		t.Fatal("the deadline was not met, or nothing hangs")
	}
	asked := make(chan error, 1)
	dance := pendingRequest{verb: "dance", answer: asked}
	go func() { m.calls <- dance }()
	within(t, "a call", m.step)
	if err := <-asked; err == nil || !strings.Contains(err.Error(), "dance") {
		t.Errorf("%v", err)
	}

	// The disk works again, and refuses writes. A caller that waits gets the error, and causes
	// another try at once.
	told := make(chan struct{})
	close(told)
	answer := make(chan error, 1)
	m.obey(pendingRequest{verb: verbFinish, answer: answer, answered: told})
	if _, err := os.ReadFile(disk); err != nil {
		t.Fatal(err)
	}
	within(t, "the try", m.step)
	if err := <-answer; err == nil || !strings.Contains(err.Error(), "cannot write the record") || m.again == nil {
		t.Fatalf("%v, %v", err, m.again)
	}
	m.obey(pendingRequest{verb: verbFinish, answer: answer, answered: told})
	if m.again != nil {
		t.Error("who waits for the record waits for the clock")
	}
	within(t, "the record", func() {
		for !m.accounted() {
			m.step()
		}
	})
	m.answerLeaving(nil)
	if err := <-answer; err != nil || recordIn(t, m.order.Record).ExitCode != 3 {
		t.Error(err)
	}
}

// TestAReportHoldsUpNothingElse: cloved gets the record and does not answer.
func TestAReportHoldsUpNothingElse(t *testing.T) {
	over := make(chan struct{})
	socket, heard := fakeCloved(t, func(c *rpc.Conn, _ rpc.Message) error { <-over; return c.Close() })
	m, _ := holding(t, order{Record: filepath.Join(t.TempDir(), "one.json"), Socket: socket})
	m.order.Phase, m.patience = phaseStarted, time.Hour
	m.conclude(end{status: exited(3), at: time.Now()})
	within(t, "the record", m.step)
	<-heard
	if m.accounted() || m.order.Phase != phaseEnded {
		t.Errorf("it is told behind the file, and waited for: %s", m.order.Phase)
	}
	asked := make(chan error, 1)
	go func() { m.calls <- pendingRequest{verb: "dance", answer: asked} }()
	within(t, "a call", m.step)
	if err := <-asked; err == nil || m.accounted() {
		t.Errorf("%v", err)
	}
	close(over)
	within(t, "the end of cloved", m.step)
	if !m.accounted() {
		t.Error("it goes on without cloved")
	}
}

// TestWhatIsAnothersIsLeftAlone: the directory belongs to another container by now.
func TestWhatIsAnothersIsLeftAlone(t *testing.T) {
	m, _ := holding(t, order{Record: filepath.Join(t.TempDir(), "none", "one.json")})
	m.order.Phase = phaseStarted
	if err := os.Remove(filepath.Join(m.directory, lockName)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(m.directory, orderName))
	if err != nil {
		t.Fatal(err)
	}
	within(t, "the end", func() { m.account(end{unknown: errors.New("unseen")}) })
	if after, err := os.ReadFile(filepath.Join(m.directory, orderName)); err != nil || string(after) != string(before) {
		t.Errorf("%v: %s became %s", err, before, after)
	}
}
