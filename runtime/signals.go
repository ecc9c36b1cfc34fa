package runtime

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/initproto"
)

// signals are the signals that this process receives while it supervises a foreground run.
type signals struct {
	incoming chan os.Signal
	ctrlC    int         // interrupts so far
	early    []os.Signal // came before the agent had started, and are for it
}

// forwarded reach the agent as they are. SIGPIPE is caught so that a closed
// standard output ends the agent's writing, not the supervision.
var forwarded = []os.Signal{
	unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
}

// listen catches signals from before the first step, so that none can end clove between two
// steps and leave them undone. The channel holds a burst: signal.Notify drops what
// does not fit.
func listen() *signals {
	s := &signals{incoming: make(chan os.Signal, 32)}
	signal.Notify(s.incoming, forwarded...)
	signal.Notify(s.incoming, unix.SIGTSTP, unix.SIGCONT, unix.SIGWINCH, unix.SIGPIPE)
	return s
}

func (s *signals) stop() { signal.Stop(s.incoming) }

// maxInterrupts is the number of interrupts at which the agent is killed instead of getting
// another one.
const maxInterrupts = 3

// pass acts on one signal.
func (s *supervisor) pass(received os.Signal, all *signals) {
	number, ok := received.(syscall.Signal)
	if !ok {
		return
	}
	switch number {
	// Nothing to do: the write that failed has its own error.
	case unix.SIGPIPE:
	case unix.SIGWINCH:
		s.resizeTerminals()
	case unix.SIGTSTP:
		s.suspend()
	case unix.SIGCONT:
		if !s.freezer.frozen() {
			s.group.Thaw() // also when it was not frozen
		}
	case unix.SIGINT:
		if all.ctrlC++; all.ctrlC >= maxInterrupts {
			s.end(causeUser, 0)
			return
		}
		_ = s.forward(number)
	case unix.SIGTERM:
		s.terminate()
	default:
		_ = s.forward(number) // a signal has no caller to report to
	}
	if slices.Contains(endingSignals, received) {
		s.boundStart(received)
	}
}

// forward fails if clove-init is frozen and has too much unread.
func (s *supervisor) forward(number syscall.Signal) error {
	err := s.send(initproto.Message{Signal: &initproto.Signal{Number: number}})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &agent.Error{Kind: agent.KindBusy, Step: "signal", Message: "too many signals wait for " + s.spec.Name,
			Hint: "`clove resume` lets a paused agent take them; `clove stop` ends it"}
	}
	return nil // a socket that is gone says that clove-init is: the loop ends with it
}

// resizeTerminals gives the ptys of the agent and of what was started beside it
// the sizes of their users' windows.
func (s *supervisor) resizeTerminals() {
	s.terminal.resize()
	for t := range s.terminals {
		t.resize()
	}
}

// suspend stops the agent together with clove, as a shell's ^Z does with any
// job: the cgroup is frozen, so that no process can ignore it. Where that fails
// both go on: a part of the agent may stand still already.
func (s *supervisor) suspend() {
	switch err := s.group.Freeze(); {
	case err == nil:
		// SIGSTOP, because SIGTSTP is caught. The shell's SIGCONT then thaws the cgroup.
		unix.Kill(unix.Getpid(), unix.SIGSTOP)
	case !s.freezer.frozen():
		s.group.Thaw()
	}
}
