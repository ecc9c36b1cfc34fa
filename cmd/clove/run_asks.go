package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/prompt"
	"clove.run/clove/runtime"
)

// asking puts the questions of a run in the foreground at its terminal, one at a time. nil: it has no terminal, or asks
// nothing.
type asking struct {
	screen   *screen
	terminal *prompt.Terminal
	answers  answerer
	ctx      context.Context // of the run
	leave    context.CancelFunc
	waiting  chan struct{} // a place for each question that waits for its turn or is shown
	device   *os.File      // opened for it; nil: none
	// redraw has the agent's program draw again; nil: it does not execute yet.
	redraw atomic.Pointer[func()]
	// over reports whether the agent has ended; nil: the contexts of questions end with it.
	over func(ctx context.Context) bool
}

// answerer takes answers, and knows those of others. The errors are *api.Errors.
type answerer interface {
	Respond(ctx context.Context, p api.ApprovalRespondParams) (api.Approval, error)
	Answered(ctx context.Context, id string) (api.Approval, error)
}

// questionsMost bounds the questions that wait for the terminal. More are answered elsewhere.
const questionsMost = 64

// refusedFor is how long n holds: programs try again at once, and are not asked about then.
const refusedFor = time.Minute

// word is what a person may type at the terminal.
type word struct {
	prompt.Answer
	params api.ApprovalRespondParams
}

// words are those about a connection or a call of a tool. What a yes does once, such as adding to a budget, has no others than yesOrNo.
var words = []word{
	{prompt.Answer{Word: "y", Means: "allow this once", Yes: true}, api.ApprovalRespondParams{Allow: true, Once: true}},
	{prompt.Answer{Word: "run", Means: "allow to the end of the run", Yes: true}, api.ApprovalRespondParams{Allow: true}},
	{prompt.Answer{Word: "n", Means: "refuse for a minute"}, api.ApprovalRespondParams{ForMS: refusedFor.Milliseconds()}},
	{prompt.Answer{Word: "never", Means: "refuse, to the end of the run"}, api.ApprovalRespondParams{}},
}

var yesOrNo = []word{
	{prompt.Answer{Word: "y", Means: "allow", Yes: true}, api.ApprovalRespondParams{Allow: true}},
	{prompt.Answer{Word: "n", Means: "refuse"}, api.ApprovalRespondParams{}},
}

// asksHere makes the run's terminal a place of answers, if it has one and asks.
func (s *screen) asksHere(ctx context.Context, spec agent.Spec) *asking {
	if len(spec.Kernel.Asks) == 0 || !isTerminal(s.in) {
		return nil
	}
	a := &asking{screen: s, waiting: make(chan struct{}, questionsMost)}
	out := s.err
	if !isTerminal(out) {
		// The device is this process's terminal, as stdin is.
		device, err := os.OpenFile("/dev/tty", os.O_WRONLY|unix.O_NOCTTY, 0)
		if err != nil {
			return nil
		}
		a.device, out = device, device
	}
	a.ctx, a.leave = context.WithCancel(ctx)
	term := os.Getenv("TERM")
	a.terminal = &prompt.Terminal{In: s.in, Out: out, Full: spec.Terminal, Dumb: term == "" || term == "dumb",
		Coded: spec.Terminal || mayShow(s.out) || mayShow(s.err)}
	a.terminal.Redraw = func() {
		if redraw := a.redraw.Load(); redraw != nil {
			(*redraw)()
		}
	}
	s.asking = a
	shown := s.display
	s.display = func(to *os.File) io.Writer { return a.terminal.Shown(shown(to)) }
	return a
}

// mayShow reports whether a terminal may show what is written to the file: through a pipe too, as with tee.
func mayShow(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return !info.Mode().IsRegular() && (err != nil || !os.SameFile(info, null))
}

// streams has a run of this process ask here.
func (a *asking) streams(streams *runtime.IO) {
	streams.Keyboard, streams.Display = a.terminal.Keyboard(), a.screen.display
	streams.Asked = func(ctx context.Context, q api.Approval) { a.put(ctx, q) }
	started := streams.Started
	streams.Started = func(live *runtime.Live) {
		a.redrawing(func() { _ = live.Redraw() }) // it may have ended
		// Nothing that is held may hold up the end.
		go func() { <-live.Ended(); a.leave() }()
		if started != nil {
			started(live)
		}
	}
}

// redrawing says how the agent's program is told to draw again.
func (a *asking) redrawing(redraw func()) {
	if a != nil {
		a.redraw.Store(&redraw)
	}
}

// close takes all questions off the terminal.
func (a *asking) close() {
	if a == nil {
		return
	}
	a.leave()
	for range questionsMost { // all have been taken off
		a.waiting <- struct{}{}
	}
	if a.device != nil {
		a.device.Close()
	}
}

// put shows a question when those before it are over. ctx ends with what asks. It does not wait.
func (a *asking) put(ctx context.Context, q api.Approval) {
	select {
	case a.waiting <- struct{}{}:
	default:
		return
	}
	go func() {
		defer func() { <-a.waiting }()
		a.show(ctx, q)
	}()
}

func (a *asking) show(ctx context.Context, q api.Approval) {
	asks := ctx
	ctx, gone := context.WithCancelCause(context.WithoutCancel(asks))
	defer gone(nil)
	// What asks ends with the answer too, which is told first.
	defer context.AfterFunc(asks, func() { time.AfterFunc(time.Second, func() { gone(errNothingAsks) }) })()
	defer context.AfterFunc(a.ctx, func() { gone(errRunEnded) })()
	go func() {
		if now, err := a.answers.Answered(ctx, q.ID); err == nil {
			gone(errors.New(outcome(now)))
		}
	}()
	if a.over != nil {
		go a.watch(ctx, gone)
	}
	offered := yesOrNo
	if q.Kind == api.ApproveNet || q.Kind == api.ApproveTool {
		offered = words
	}
	question := prompt.Question{Lines: a.lines(q), Given: func(typed string) error {
		for _, w := range offered {
			if w.Word != typed {
				continue
			}
			p := w.params
			p.Run, p.ID, p.Digest = string(q.Run), q.ID, q.Digest
			_, err := a.answers.Respond(a.ctx, p) // ctx ends with the answer, before this call does
			var failed *api.Error
			if errors.As(err, &failed) {
				return errors.New(printable(failed.Error()))
			}
			return err
		}
		return errors.New("that is none of the answers")
	}}
	for _, w := range offered {
		question.Answers = append(question.Answers, w.Answer)
	}
	a.terminal.Ask(ctx, question)
}

// watch takes a question off when the agent has ended.
func (a *asking) watch(ctx context.Context, gone context.CancelCauseFunc) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case <-look.C:
			if a.over(ctx) {
				gone(errRunEnded)
			}
		case <-ctx.Done():
		}
	}
}

// Why a question is taken off.
var (
	errRunEnded    = errors.New("the run has ended")
	errNothingAsks = errors.New("nothing waits for the answer any more")
)

// outcome says how a question was answered elsewhere.
func outcome(q api.Approval) string {
	if len(q.Answers) == 0 {
		return "the question is " + string(q.State)
	}
	return fmt.Sprintf("%s by user %d", q.State, q.Answers[len(q.Answers)-1].UID)
}

// lines are a question, as clove approvals shows it.
func (a *asking) lines(q api.Approval) (lines []string) {
	name := "clove:"
	if os.Getenv("NO_COLOR") == "" && !a.terminal.Dumb {
		name = cyan + name + reset
	}
	for _, line := range questionLines(q) {
		lines = append(lines, name+" "+printable(fmt.Sprint(line)))
	}
	return lines
}

// checkAnswerable is an error where neither cloved nor a terminal can be asked.
func checkAnswerable(k agent.Kernel, here *asking) error {
	if len(k.Asks) == 0 || here != nil {
		return nil
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "--ask", Message: "there is neither a terminal to ask at nor cloved, which keeps questions for other terminals",
		Hint: agent.StartCloved() + "; or run it at a terminal, without -d"}
}
