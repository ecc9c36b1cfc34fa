package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/store"
)

// stepExec names clove-init's part of a start, behind the launch's own steps, up to the
// agent's execve.
const stepExec = "exec"

// stepFilter is the part of it in which the agent's filter is seen to be on.
const stepFilter = "filter"

// giveUp ends a start that does not come to the agent's execve. A process that does not
// end then hangs in the kernel, and is left to it. It is called twice: first it kills, and when the
// timer fires again although all was killed, it gives the wait up.
func (s *supervisor) giveUp() {
	if s.seen.startError != nil {
		s.seen.startError = hungError{s.seen.startError}
		s.messages = nil
		return
	}
	if s.seen.startError = s.wanted; s.wanted == nil {
		s.seen.startError = noProgress(stepExec, s.spec.StartBound())
	}
	killInside(s.run.Lease.Cgroups)
	s.starting.Reset(letGoTime)
}

// boundStart bounds the rest of a start that is to end; received is nil where no
// signal asked for that.
func (s *supervisor) boundStart(received os.Signal) {
	if s.began != 0 || s.seen.startError != nil {
		return
	}
	s.wanted = interrupted(stepExec, received)
	s.starting.Reset(letGoTime)
}

// onMessage acts on what clove-init reports.
func (s *supervisor) onMessage(m initproto.Message, open bool) {
	switch {
	case !open:
		s.messages = nil
		if s.began != 0 && !s.seen.exitKnown {
			// clove-init was killed with the rest and reported no time.
			s.seen.wall = time.Duration(boottime.NowNS() - s.began)
		}
	case m.Filtered != nil:
		go func() { s.admitted <- s.entrance.calls.admit(m.Filtered.Listener, s.isAgent) }()
	case m.Started != nil:
		s.onStarted(*m.Started)
	default:
		s.seen.add(m)
		if m.Exited != nil {
			s.noteExecuted(time.Duration(m.Exited.ExecutedNS))
		}
	}
}

// isAgent reports whether a thread is of a child of PID 1's, which has only one so far.
func (s *supervisor) isAgent(status map[string]string) bool {
	return status["PPid"] == strconv.Itoa(s.box.pid)
}

// onAdmitted ends a start whose filter cannot be trusted. The agent waits for the answer, so
// it has executed nothing.
func (s *supervisor) onAdmitted(err error) {
	if err == nil || s.began != 0 || s.seen.startError != nil {
		return
	}
	s.wanted = &agent.Error{Step: stepFilter, Message: "cannot start the agent", Err: err,
		Hint: "`clove doctor` shows what this host lacks"}
	s.giveUp()
}

// checkFilter checks the filter of an agent that was not checked before its execve,
// because the kernel makes no listeners.
func (s *supervisor) checkFilter() {
	if !s.entrance.calls.unseen() {
		return
	}
	pids, err := s.group.Pids()
	for _, pid := range pids {
		if err == nil {
			_, err = restricted(pid)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has ended already
		s.seen.startError = &agent.Error{Step: stepFilter, Message: "cannot trust the agent's filter", Err: err}
		s.killNow()
	}
}

// noteRetry is between two attempts at a store that fails: nothing else would
// say when it works again.
const noteRetry = time.Second

// onStarted arms the clocks. They count from the moment that clove-init reports, not from
// the arrival of its message, which may be late.
func (s *supervisor) onStarted(m initproto.Started) {
	s.began = m.BootTimeNS - int64(s.box.ahead) // clove-init reads the clock of the sandbox
	s.seen.launched, s.seen.spent = true, m.Spent
	s.starting.Stop()
	s.checkFilter()
	limits := s.spec.Limits
	s.setDeadline()
	if _, asked := s.held.enforced[agent.ControlCPUTime]; asked {
		s.cpu.Reset(s.untilCPULimit(limits.CPUTime))
	}
	if m.Terminal != nil {
		s.terminal = joinTerminal(m.Terminal, s.pipes, s.streams)
	}
	s.pipes.mail.begin()
	s.run.PID, s.run.Started = s.box.pid, time.Now()
	// gofail: var startedUnnoted string
	// failpoint(startedUnnoted, "")

	s.noteStarted()
}

// noteStarted notes in the store that the agent runs, which waits for the disk and for
// other cloves; the agent may end meanwhile. In the loop this wait would hold up the
// deadline.
func (s *supervisor) noteStarted() {
	noting, id, pid, started := make(chan error, 1), s.spec.ID, s.run.PID, s.run.Started
	go func() {
		noting <- s.paths.withStore(func(st *store.Store) error {
			_, err := st.Apply(id, agent.EventStarted, func(run *agent.Run) { run.PID, run.Started = pid, started })
			return err
		})
	}()
	s.noting = noting
}

// onNoted shows the agent to others. Until the store knows of it, others can only end it,
// so a failure is reported once and the note tried again.
func (s *supervisor) onNoted(err error) {
	s.noting = nil
	// A conflict or an unknown run means that the store has ended the run or forgotten it;
	// another attempt would fail alike.
	if err != nil && agent.KindOf(err) != agent.KindConflict && agent.KindOf(err) != agent.KindNotFound {
		s.note.Reset(noteRetry)
	}
	if s.noted {
		return
	}
	s.noted = true
	if err != nil {
		// The run goes on: its end is what must not be lost.
		fmt.Fprintf(s.streams.Stderr, "clove: warning: cannot note that %s runs: %v\n", s.spec.Name, err)
	}
	live := &Live{asks: s.asks, ended: s.ended, s: s}
	if s.programs != nil {
		go serveTools(s.programs, live)
	}
	if s.streams.Started != nil {
		s.streams.Started(live)
	}
}
