package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/policies/settings"
)

// passedOn are the signals that a foreground run's agent gets, and endingOnes those of them
// that mean "go away".
var (
	passedOn   = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2}
	endingOnes = passedOn[:4]
)

// askTime bounds a request to cloved that a signal or the end of the session makes
// necessary.
const askTime = 20 * time.Second

// foreground is a run that cloved starts for a user other than root. For root, clove
// itself supervises; here it has the streams, the terminal and the signals, and the
// run's supervisor is another process.
type foreground struct {
	launcher
	client  *client.Client
	id      string
	signals chan os.Signal
	session *client.Session
	pieces  chan api.SessionOutput // output that is still to be printed
	shown   chan struct{}          // closed when all of it was printed
	// A signal after the agent's end cancels it: the rest of the output is then not
	// printed.
	enough context.Context    // of the printing
	skip   context.CancelFunc // cancels enough
}

// launchByCloved is launch by cloved, as for each member of its group. Two flags are refused:
// their output comes from the supervisor, which is another process here.
func (p launcher) launchByCloved(c *cli.Context, spec agent.Spec, ended func(agent.Record)) (agent.Record, error) {
	root := os.Geteuid() == 0
	for _, flag := range []string{flagNetworkLog, flagDebug} {
		if c.IsSet(flag) && root {
			return agent.Record{}, invalid(flag, "leave apply out of --"+settings.Asks, "cloved runs what asks people about changes, and has no such output")
		}
		if c.IsSet(flag) {
			return agent.Record{}, &agent.Error{Kind: agent.KindPrivilege, Step: "--" + flag, Message: "only root may use it",
				Hint: "omit it: clove inspect shows what the network refused, clove debug RUN what there is of a run"}
		}
	}
	d, err := p.cloved(c)
	switch {
	case err != nil && agent.KindOf(err) == agent.KindNotFound && spec.Kernel.People(agent.AskApply) > 0:
		err = needsCloved(settings.Asks, "cloved, which applies changes for an agent, does not run")
	case err != nil && agent.KindOf(err) == agent.KindNotFound:
		err = &agent.Error{Kind: agent.KindPrivilege, Message: "clove needs root to make namespaces and cgroups, and cloved, which would do it for you, does not run",
			Hint: "run it with sudo, or start cloved; the agent itself never runs as root"}
	}
	if err != nil {
		return agent.Record{}, err
	}
	defer d.Close()
	f := &foreground{launcher: p, client: d, id: string(spec.ID), signals: make(chan os.Signal, 32),
		pieces: make(chan api.SessionOutput), shown: make(chan struct{})}
	f.enough, f.skip = context.WithCancel(c.Context)
	defer f.skip()
	// Before the start, so that no signal ends this program and leaves a run behind.
	// SIGPIPE is caught, because otherwise a reader that goes away would kill clove
	// before the agent learns of it.
	signal.Notify(f.signals, slices.Concat(passedOn, []os.Signal{unix.SIGTSTP, unix.SIGCONT, unix.SIGPIPE})...)
	defer signal.Stop(f.signals)
	if f.asksHere(c.Context, spec) != nil {
		f.asking.answers, f.asking.over = client.NewShare(d), f.over
	}
	defer f.asking.close()
	record, err := f.run(c.Context, spec)
	if err == nil {
		ended(record)
	}
	return record, err
}

// run starts the run and holds its session to the end.
func (f *foreground) run(ctx context.Context, spec agent.Spec) (agent.Record, error) {
	spec.Foreground = true
	var failed *api.Error
	// A start that fails after the run exists has a record, which is the result of the
	// command.
	begins, started := f.showStart()
	begins("cloved")
	err := f.start(ctx, spec)
	started()
	switch {
	case errors.As(err, &failed) && failed.Data.Record != nil:
		return *failed.Data.Record, nil
	case err != nil:
		return agent.Record{}, err
	}
	t, err := f.changeTerminal(spec.Terminal, nil)
	if err != nil {
		return agent.Record{}, err
	}
	defer t.restore()
	f.session, err = f.client.Foreground(ctx, api.AttachParams{RunParams: api.RunParams{Run: f.id}, Size: t.size()})
	if err != nil {
		return agent.Record{}, err
	}
	defer t.follow(f.session)()
	f.asking.redrawing(func() { t.redraw(f.session) })
	go f.feed(f.session, nil, func() { _ = f.session.CloseInput() }) // it may be over
	record, err := f.hold(ctx)
	t.restore() // before anything is printed on it
	return record, err
}

// start asks cloved to start the run. If a signal that means "end" comes first, the run
// is removed again.
func (f *foreground) start(ctx context.Context, spec agent.Spec) error {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	params := api.StartParams{Spec: spec, Traceparent: os.Getenv("TRACEPARENT")}
	if spec.Terminal {
		params.Size = (&userTerminal{in: f.in, out: f.out}).size()
	}
	started := make(chan error, 1)
	go func() {
		_, err := client.Do(asking, f.client, methods.RunStart, params)
		started <- err
	}()
	for {
		select {
		case err := <-started:
			return err
		case received := <-f.signals:
			if !slices.Contains(endingOnes, received) {
				continue
			}
			// First the request, whose answer would otherwise come for a run that is
			// gone.
			// The request ends before the removal, so that it cannot start the run
			// afterwards.
			cancel()
			<-started
			removing, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			err := client.Perform(removing, f.client, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: f.id}, Force: true})
			if agent.KindOf(err) == agent.KindNotFound {
				err = nil
			}
			return &agent.Error{Message: unix.SignalName(received.(unix.Signal)) + " came before the agent had started", Err: err}
		}
	}
}

// hold passes streams and signals on until the run has ended.
func (f *foreground) hold(ctx context.Context) (agent.Record, error) {
	var result api.AttachResult
	answered := make(chan error, 1)
	go f.showAll()
	go func() {
		err := f.session.Answer(ctx, &result, f.queue)
		// The session is over; showAll prints what is left and ends.
		close(f.pieces)
		select {
		case <-f.shown:
		case <-f.enough.Done():
		}
		answered <- err
	}()
	for {
		select {
		case err := <-answered:
			if err == nil && result.Record != nil {
				return *result.Record, nil
			}
			return lostRecord(ctx, f.client, f.id, err)
		case received := <-f.signals:
			f.pass(ctx, received.(unix.Signal))
		}
	}
}

// lostRecord asks for the record of a run whose session ended without one. because is the
// session's error.
func lostRecord(ctx context.Context, d *client.Client, run string, because error) (agent.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	result, err := client.Do(ctx, d, methods.RunWait, api.RunParams{Run: run})
	if err != nil && because != nil {
		err = because
	}
	return result.Record, err
}

// pass acts on one signal as runtime does for root's foreground runs.
func (f *foreground) pass(ctx context.Context, received unix.Signal) {
	switch received {
	case unix.SIGPIPE: // the write that failed has reported it
	case unix.SIGTSTP:
		// Stopped by ctrl-z: the agent is paused first, so that it does not run on
		// while its terminal belongs to the shell. SIGSTOP, because SIGTSTP is caught.
		if client.Perform(ctx, f.client, methods.RunPause, api.RunParams{Run: f.id}) == nil {
			_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
		}
	case unix.SIGCONT:
		_ = client.Perform(ctx, f.client, methods.RunResume, api.RunParams{Run: f.id}) // also when it was not paused
	default:
		_ = f.session.Signal(received) // it may be over
	}
	// Only the output is left, and a user that ends the run now does not want the
	// rest.
	if slices.Contains(endingOnes, os.Signal(received)) && f.over(ctx) {
		f.skip()
	}
}

// over reports whether the agent has ended and only its output is still on its way. If
// cloved does not answer, nothing is known, and the output is waited for.
func (f *foreground) over(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	_, err := client.Do(ctx, f.client, methods.RunStats, api.RunParams{Run: f.id})
	var answered *api.Error // from cloved; any other error says nothing about the run
	return errors.As(err, &answered) && (answered.Code == api.CodeConflict || answered.Code == api.CodeNotFound)
}

// queue takes a piece of output and blocks until it is printed. The session is read no
// further meanwhile, and so the agent waits for a slow reader.
func (f *foreground) queue(piece api.SessionOutput) error {
	select {
	case f.pieces <- piece:
	case <-f.enough.Done():
	}
	return nil
}

// showAll prints the agent's output. If the reader of a stream has gone, the agent gets
// EPIPE on its own, as it would from root's clove; any other failure to print is
// ignored.
func (f *foreground) showAll() {
	defer close(f.shown)
	for piece := range f.pieces {
		if piece.Asked != nil && f.asking != nil {
			f.asking.put(f.enough, *piece.Asked)
			continue
		}
		if piece.Denied != nil || piece.Budget != nil || piece.HomeCopied != "" || piece.Asked != nil {
			if !f.json {
				f.reportPiece(piece)
			}
			continue
		}
		if errors.Is(f.showOutput(piece), unix.EPIPE) {
			_ = f.session.CloseOutput(piece.Stream) // it may be over
		}
	}
}

// reportPiece prints what clove itself has to say of a run.
func (f *foreground) reportPiece(piece api.SessionOutput) {
	if denied := piece.Denied; denied != nil {
		f.reportDenied(denied.Denial, denied.Reason, denied.Hint)
		return
	}
	if piece.HomeCopied != "" {
		f.reportHomeCopied(piece.HomeCopied)
		return
	}
	if piece.Asked != nil {
		f.reportAsked(f.enough, *piece.Asked)
		return
	}
	if b := piece.Budget; b.Granted != nil && b.Paused { // a line without a limit has no mark
		f.reportPaused(b.Budget, b.Timeout, false)
	} else if b.Granted != nil {
		f.reportWarned(b.Budget)
	}
}
