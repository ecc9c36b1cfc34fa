package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSignalsAreForwarded: in order, without those that clove itself uses.
func TestSignalsAreForwarded(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	s.begin()
	for _, own := range []os.Signal{unix.SIGPIPE, unix.SIGWINCH} {
		s.signals.incoming <- own
	}
	for _, sent := range forwarded {
		if sent == unix.SIGTERM {
			continue // TestATermThatIsPassedOnBeginsTheGrace
		}
		s.signals.incoming <- sent
		if m := s.hears(); m.Signal == nil || m.Signal.Number != sent.(syscall.Signal) {
			t.Errorf("%v was forwarded as %+v", sent, m)
		}
	}
	if seen := s.ends(); seen.cause != causeNone {
		t.Errorf("a signal ended the run: %+v", seen)
	}
}

// TestATermThatIsPassedOnBeginsTheGrace: an interrupt, the control, does not.
func TestATermThatIsPassedOnBeginsTheGrace(t *testing.T) {
	t.Parallel()
	for _, sent := range []unix.Signal{unix.SIGTERM, unix.SIGINT} {
		s := newSupervised(t, nil)
		loop := newSupervisor(s.launch)
		defer loop.close()
		loop.pass(sent, s.signals)
		if m := s.hears(); m.Signal == nil || m.Signal.Number != sent {
			t.Errorf("%v was forwarded as %+v", sent, m)
		}
		if begun := !loop.graceEnd.IsZero() && loop.over.Stop() && loop.seen.cause == causeUser; begun != (sent == unix.SIGTERM) {
			t.Errorf("%v: the end of the grace is %v, the cause %q", sent, loop.graceEnd, loop.seen.cause)
		}
	}
}

// TestPatienceEndsWithTheThirdInterrupt: two interrupts are the control.
func TestPatienceEndsWithTheThirdInterrupt(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	kill := s.watchKill()
	s.begin()
	for range maxInterrupts - 1 {
		s.signals.incoming <- unix.SIGINT
		if m := s.hears(); m.Signal == nil {
			t.Errorf("it says %+v", m)
		}
	}
	if kill.happened() {
		t.Error("killed too early")
	}
	s.signals.incoming <- unix.SIGINT
	kill.wait()
	if seen := s.ends(); seen.cause != causeUser {
		t.Errorf("%+v", seen)
	}
}

func TestContinuingThawsAtAnyTime(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, nil)
	s.put("cgroup.freeze", "1\n")
	sv := supervisorOf(s.launch)
	sv.pass(unix.SIGCONT, s.signals)
	text, err := os.ReadFile(filepath.Join(s.cgroup, "cgroup.freeze"))
	if err != nil || strings.TrimSpace(string(text)) != "0" {
		t.Errorf("cgroup.freeze is %q, %v", text, err)
	}
}

// TestListenTakesItsSignalsAway: none of them has its default action, which would end
// the process.
func TestListenTakesItsSignalsAway(t *testing.T) {
	t.Parallel()
	s := listen()
	defer s.stop()
	if err := unix.Kill(unix.Getpid(), unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if got := <-s.incoming; got != unix.SIGUSR1 {
		t.Errorf("got %v", got)
	}
}
