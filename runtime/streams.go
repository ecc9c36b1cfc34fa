package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/descriptor"
)

// IO is what the agent's standard streams are connected to. The agent never holds these
// files: it holds pipes (or a pty), so that it can neither reopen a host file through
// /proc/self/fd nor write past the output limit. Decision 7 (docs/decisions) is about this.
type IO struct {
	Stdin, Stdout, Stderr *os.File
	// Display is what output passes through on its way to Stdout and Stderr; nil: it stays as it
	// is. A terminal needs one, because an agent's output can make it type.
	Display func(to *os.File) io.Writer
	// Keyboard is held while Stdin is read, and not while that is waited for; nil: nothing else reads it.
	Keyboard sync.Locker
	// Owner is whose rights the workspace is opened with; the zero value is root.
	Owner agent.Owner
	// CallerRlimits hold for the commands of --on-warn and --on-end; none: this process's own.
	CallerRlimits []agent.Rlimit
	// Layer is an image of CopyLayer that the run's layer begins as a copy of; empty: an empty
	// layer. Only root names one: the kernel reads it as it reads a disk.
	Layer string
	// Shown is the root of another run that this one sees, read-only; nil: none. Only root
	// names one.
	Shown      *ShownRoot
	Debug      io.Writer // plan and step times; nil: none
	NetworkLog io.Writer // each decision of the gate as a line of JSON; nil: none
	Secrets    Secrets   // keeps the secrets of the run; nil: a run that may use some is refused
	Models     Models    // serves models to the agent; nil: a run that may call them is refused
	Tools      Tools     // serves the door to tools; nil: a run that may call some is refused
	Kernel     Kernel    // answers for what agents share, and what their accounts spend; nil: a run that has a part in it is refused
	// AskNetwork asks a person about a target that the network's rules refuse; rule is what a
	// yes allows for the rest of the run. One question is put at a time. It returns when it is
	// answered, or ctx ends. nil: what the rules refuse stays refused.
	AskNetwork func(ctx context.Context, rule agent.EgressRule) bool
	// The functions may be nil. All but Drained and Ended must not block.

	// Denied gets the first denial of each target, and the loss of the gate.
	Denied func(d agent.Denial, reason, hint string)
	// Asked gets a question about the run that waits for people. ctx ends with what asks.
	Asked func(ctx context.Context, a api.Approval)
	// Warned gets a budget that reached its mark.
	Warned func(b api.Budget)
	// HomeCopied gets the name of a kept home that another run has: this one has a copy of it.
	HomeCopied func(name string)
	// PausedFor gets the budget of which nothing is left, when the run is paused for it.
	// timeout is when the wall clock ends the run all the same; zero: never.
	PausedFor func(b api.Budget, timeout time.Time)
	// CalloutFailed gets why what a flag names could not be used: a command, a URL, or mail. It is called
	// from any goroutine.
	CalloutFailed func(flag string, err error)
	// Begins is called before each step of the launch.
	Begins func(step string)
	// Step is called after each step of the launch, in order, before Started.
	Step func(name string, began time.Time)
	// Started is called once the agent executes.
	Started func(*Live)
	// Drained is called when all output was passed on, before the end is stored: a
	// client that sees the end finds the whole output. It may wait only for its own
	// readers.
	Drained func()
	// Ended gets the record when it is stored. Signals are held off until it returns: one
	// that was meant for the agent cannot end the caller before it has written the
	// record.
	Ended func(agent.Record)
	// Observed gets what a run with Spec.Learn used, before Ended. It is not called for a run
	// that never came to its execve.
	Observed func(agent.Observed)
	// Waits gets a record that does not fit on the host's full disk, before Run waits
	// for space.
	Waits func(agent.Record)
}

// ShownRoot is the whole root of an ended run: an image of CopyLayer, or empty if that run
// changed nothing, and where it is inside.
type ShownRoot struct{ Image, Target string }

func (o IO) display(to *os.File) io.Writer {
	if o.Display == nil {
		return to
	}
	return o.Display(to)
}

// streams carries bytes between the agent's pipes and an IO.
type streams struct {
	agentSide []*os.File // read end of stdin, write ends of stdout and stderr
	stdin     *os.File   // our write end
	stop      *os.File   // closed to end the reading of the user's input
	stopped   *os.File   // hangs up then
	limit     int64      // bytes of output allowed; 0: no limit
	written   atomic.Int64
	exceeded  chan struct{} // closed when the limit is passed
	once      sync.Once
	outputs   sync.WaitGroup
	readers   []*os.File   // our read ends
	cut       atomic.Bool  // what comes from now on is of no interest
	mail      *mailStreams // nil: mail has no part in them
}

func newStreams(limit int64) *streams {
	return &streams{limit: limit, exceeded: make(chan struct{})}
}

// connectPipes makes the three pipes and starts to copy. closeAgentSide must
// follow once the agent has its ends.
func (s *streams) connectPipes(streams IO) (err error) {
	if s.stopped, s.stop, err = os.Pipe(); err != nil {
		return err
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	s.stdin, s.agentSide = stdin, []*os.File{in}
	for i, to := range []*os.File{streams.Stdout, streams.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		s.agentSide = append(s.agentSide, w)
		if out := s.mail.output(); out != nil && i == 0 {
			s.pump(tee{streams.display(to), out}, r, out.finish)
		} else {
			s.pump(streams.display(to), r, func() {})
		}
	}
	go s.feed(streams.Stdin, streams.Keyboard)
	return nil
}

// giveTo makes the agent the owner of its ends of the pipes: `echo > /dev/stderr` reopens
// the pipe, which only its owner may do. It comes after the start, because libcontainer
// gives them to clove-init's id.
func (s *streams) giveTo(uid, gid int) error {
	for _, f := range s.agentSide {
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeNamedPipe == 0 {
			continue // the host's /dev/null, where the agent gets a terminal
		}
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	return nil
}

// connectNull is for an agent with a terminal: its streams come from inside.
func (s *streams) connectNull() (err error) {
	if s.stopped, s.stop, err = os.Pipe(); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	s.agentSide = []*os.File{null, null, null}
	return nil
}

// feed ends with the input, or with the streams.
func (s *streams) feed(from *os.File, keyboard sync.Locker) {
	defer s.stopped.Close()
	s.mail.feed(s.stdin, func() { copyInput(s.stdin, from, s.stopped, keyboard) })
	s.stdin.Close()
}

// pump copies one output until its last writer is gone, or drainNow, and then calls finish.
func (s *streams) pump(to io.Writer, from *os.File, finish func()) {
	s.outputs.Add(1)
	s.readers = append(s.readers, from)
	go func() {
		defer s.outputs.Done()
		defer from.Close()
		s.copyOutput(to, from)
		if s.cut.Load() {
			s.copyOutput(to, present{from})
		}
		finish()
	}()
}

// present reads what is there already and waits for no more.
type present struct{ file *os.File }

func (p present) Read(buffer []byte) (n int, err error) {
	err = descriptor.Use(p.file, func(fd int) (err error) { n, err = unix.Read(fd, buffer); return err }) // both kinds are non-blocking
	if err != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}

// drainNow passes on what was written by now, and returns when that is done or
// ctx ends.
func (s *streams) drainNow(ctx context.Context) {
	s.cut.Store(true)
	for _, reader := range s.readers {
		_ = reader.SetReadDeadline(time.Now()) // closed: it is drained
	}
	drained := make(chan struct{})
	go func() {
		s.outputs.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-ctx.Done():
	}
}

// copyOutput counts every byte and passes on what the limit allows. When the reader on our
// side is gone, the agent's pipe is closed, so that it gets the EPIPE or SIGPIPE that it
// would get without clove. After another error, a full disk for one, it reads on: the agent
// would block in its next write otherwise.
func (s *streams) copyOutput(to io.Writer, from io.Reader) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, werr := to.Write(buffer[:s.admit(int64(n))]); werr != nil && errors.Is(werr, unix.EPIPE) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// admit counts n bytes and returns how many of them are within the limit.
func (s *streams) admit(n int64) int64 {
	total := s.written.Add(n)
	if s.limit == 0 || total <= s.limit {
		return n
	}
	s.once.Do(func() { close(s.exceeded) })
	return max(0, n-(total-s.limit))
}

// closeAgentSide drops our copies of the agent's ends, so that its death is
// seen as the end of its output.
func (s *streams) closeAgentSide() {
	for _, f := range s.agentSide {
		f.Close()
	}
	s.agentSide = nil
}

// drain waits until everything that the agent wrote was passed on. Every
// writer is dead by then, so it ends unless our own reader is stuck; a signal
// then ends the wait, because the user has seen enough.
func (s *streams) drain(signals <-chan os.Signal) {
	s.closeAgentSide()
	drained := make(chan struct{})
	go func() {
		s.outputs.Wait()
		close(drained)
	}()
	for {
		select {
		case <-drained:
			return
		case signal := <-signals:
			if slices.Contains(endingSignals, signal) {
				return
			}
		}
	}
}

// abandon closes our ends. It does not wait: drain has done that.
func (s *streams) abandon() error {
	s.closeAgentSide()
	if s.stdin != nil {
		s.stdin.Close()
	}
	if s.stop != nil {
		s.stop.Close()
	}
	return nil
}

// Kernel answers for what agents share: grants and budgets. Either cloved does, or, where
// none runs, the process that supervises a run in the foreground.
type Kernel interface {
	// Attach makes the run's grants and budgets ready, and calls changed with how the run
	// stands: once before it returns, and after each change until ctx ends.
	Attach(ctx context.Context, run agent.Run, changed func(api.Standing)) error
	// Serve answers the calls of the run's agent that come on calls, which is an end of a
	// kernel/channel and stays the caller's. It returns when ctx ends, when the gate at the other
	// end is gone, or when it cannot go on.
	Serve(ctx context.Context, run agent.ID, calls *os.File) error
	// Call is one call in the name of the run's agent, for the supervisor itself. The error is an
	// *api.Error.
	Call(ctx context.Context, run agent.ID, method string, params json.RawMessage) (json.RawMessage, error)
	// Ask puts a question about the run to people, and returns it with the answer, which may take long. asked gets
	// it while it waits; it may be nil.
	Ask(ctx context.Context, question api.ApprovalAskParams, asked func(api.Approval)) (api.Approval, error)
	// Asked waits for the answer to a question about a call of the run's agent, which stands (api.Standing.Asking).
	// asked gets it if it waits still.
	Asked(ctx context.Context, id string, asked func(api.Approval)) (api.Approval, error)
	// Answer brings the answer of the run's --on-ask, whose proof was checked.
	Answer(ctx context.Context, answer api.ApprovalRespondParams) error
	// Meter reports what the Linux kernel has counted since a start of the run, by dimension.
	Meter(ctx context.Context, run agent.ID, start int, totals map[string]int64) error
}

// Models serves models to agents over HTTP. Either cloved does, or, where none runs, the
// process that supervises a run in the foreground.
type Models interface {
	// Serve serves the run's agent on a listener, which it takes over, until ctx ends. used
	// returns what its calls have used; it is called when the agent has ended.
	Serve(ctx context.Context, run agent.Run, listener *os.File) (used func() []agent.ModelUse, err error)
}

// endingSignals are those of them that ask a program to end. They also end a start, and the
// wait for output once the agent is gone.
var endingSignals = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM}
