package runtime

import (
	"os"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
)

// noProcess is a pid above every pid that a kernel gives: /proc has no such process.
const noProcess = 1 << 23

func watchedSockets(t *testing.T, pid int) *supervised {
	t.Helper()
	s := newSupervised(t, nil)
	s.launch.held.enforced[agent.ControlSockets] = "clove"
	s.launch.box.pid = pid
	t.Cleanup(func() { s.launch.undo.Run() })
	return s
}

// TestAnAgentIsGoneBeforeItsSocketsAreWatched: an agent that ends at once counts as ended, not
// as one that could not be watched.
func TestAnAgentIsGoneBeforeItsSocketsAreWatched(t *testing.T) {
	t.Parallel()
	s := watchedSockets(t, os.Getpid())
	describeFor(t, s)
	ordered := make(chan error, 1)
	go func() { ordered <- s.launch.order() }()
	if o := s.hears().Orders; o == nil || <-ordered != nil {
		t.Fatalf("orders %+v", o)
	}
	s.launch.box.pid = noProcess
	go func() { s.outcome <- s.launch.supervise(s.ctx, s.signals) }()
	s.started()
	s.sends(initproto.Message{Exited: &initproto.Exited{Code: 3}})
	if seen := s.ends(); seen.startError != nil || !seen.exitKnown || seen.code != 3 {
		t.Errorf("%+v", seen)
	}
}

// TestNothingStartsUnwatched: if its sockets cannot be watched, the agent does not start.
func TestNothingStartsUnwatched(t *testing.T) {
	t.Parallel()
	s := watchedSockets(t, noProcess)
	if err := s.launch.order(); err == nil {
		t.Error("orders were sent")
	}
}
