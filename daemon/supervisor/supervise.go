package supervisor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/client"
	"clove.run/clove/daemon/logs"
	"clove.run/clove/internal/undo"
	"clove.run/clove/models/attach"
	"clove.run/clove/runtime"
)

// Launcher runs agents; *runtime.Runtime is one.
type Launcher interface {
	Run(ctx context.Context, spec agent.Spec, streams runtime.IO) (agent.Record, error)
	Refuse(id agent.ID, cause error) error
}

// flushTime is how long attached callers get for the last output.
const flushTime = 5 * time.Second

// Supervise does what the order says and answers once on the pipe. It returns
// when the agent's record is stored. runDir is the directory of the run
// directories.
func Supervise(ctx context.Context, launcher Launcher, runDir string, order Order, pipe *os.File) error {
	var u undo.Stack
	defer u.Run()
	s := &supervisor{spec: order.Spec, owner: order.Owner, rlimits: order.Rlimits, socket: order.Socket, metered: order.Metered, hub: newHub(), ended: make(chan struct{})}
	if order.Spec.Foreground {
		s.hub.host = newHost()
	}
	// gofail: var superviseOrdered string
	// failpoint(superviseOrdered, "")

	err := s.open(order, &u)
	// gofail: var superviseOpened string
	// if err == nil { err = failpoint(superviseOpened, "") }

	if err == nil {
		err = s.run(ctx, launcher, filepath.Join(runDir, string(order.Spec.ID), SocketName), pipe)
	} else {
		err = refuse(launcher, order.Spec.ID, err)
	}
	if err != nil {
		answer(pipe, Answer{Error: api.ErrorOf(err)})
	}
	return err
}

// supervisor is one detached run.
type supervisor struct {
	spec    agent.Spec
	owner   agent.Owner
	rlimits []agent.Rlimit // of its commands on the host
	socket  string         // cloved's
	metered bool           // as Order.Metered
	log     *logs.Log
	lines   []*logs.Lines // of the agent's streams, for flush
	hub     *hub
	streams *streams
	server  *server
	ended   chan struct{} // closed when the record is final
	record  agent.Record  // from then on
}

// open makes what must be there before the agent.
func (s *supervisor) open(order Order, u *undo.Stack) (err error) {
	if s.log, err = logs.Open(order.LogDir, order.LogCapBytes); err != nil {
		return agent.Failed("log", err)
	}
	u.Add("log", s.log.Close)
	s.streams, err = openStreams(s.spec.Terminal, s.spec.Stdin || s.spec.Foreground, func(stream string) io.Writer {
		lines := s.log.Stream(stream)
		s.lines = append(s.lines, lines)
		return logAndHub(lines, s.hub, stream)
	})
	if err == nil {
		s.streams.fit(order.Size)
	}
	if err == nil && (order.Input != nil || order.Content != "") {
		err = s.streams.endWith(order.Input, order.Content)
	}
	return agent.Failed("streams", err)
}

// run launches the agent, and ends what serves it in an order that loses nothing: output
// first, then the record, then the callers that wait for it.
func (s *supervisor) run(ctx context.Context, launcher Launcher, socket string, pipe *os.File) error {
	started := false // also true when the caller knows that the agent will not start
	var steps []Step
	streams := s.streams.io
	streams.Owner, streams.CallerRlimits = s.owner, s.rlimits
	if s.spec.Kernel.Shares() || s.metered {
		cloved := client.At(s.socket)
		defer cloved.Close()
		s.serveBy(cloved, &streams)
	}
	streams.CalloutFailed = func(flag string, err error) { s.say(flag + ": " + err.Error()) }
	streams.HomeCopied = func(name string) {
		s.say("another run has the kept home " + name + ": this one has a copy, which is not kept")
	}
	streams.Step = func(name string, began time.Time) { steps = append(steps, Step{name, began, time.Since(began)}) }
	streams.Started = func(live *runtime.Live) {
		started = true
		s.begin(socket, live)
		answer(pipe, Answer{Started: true, Steps: steps})
		// gofail: var superviseAnswered string
		// failpoint(superviseAnswered, "")

		// The memory of the start is not needed again, and each agent has such a process.
		debug.FreeOSMemory()
	}
	// The record waits for room on the disk; the caller of a start that failed need not.
	streams.Waits = func(record agent.Record) {
		if !started {
			started = true
			answer(pipe, notStarted(record, steps))
		}
	}
	streams.Drained = func() {
		s.flush()
		if s.hub.host != nil && s.server != nil {
			s.hub.host.await() // or it would find no run any more
		}
	}
	streams.Asked = s.hub.asked
	if s.hub.host != nil {
		streams.HomeCopied = s.hub.host.homeCopied
		streams.Denied, streams.Warned, streams.PausedFor = s.hub.host.denied, s.hub.host.warned, s.hub.host.paused
		// Runtime handles them while it runs; one that comes later must not end this process.
		signal.Notify(make(chan os.Signal, 1), hostSignals...)
	}
	record, err := launcher.Run(ctx, s.spec, streams)
	// gofail: var superviseEnded string
	// failpoint(superviseEnded, "")

	s.flush()
	// Version 0: there is no record, because the run never was in the store as one that
	// starts. It is still queued there, and ended here. fs.ErrExist: another supervisor
	// lives in its directory, and the run is that one's.
	if err != nil && !started && record.Version == 0 && !errors.Is(err, fs.ErrExist) {
		return refuse(launcher, s.spec.ID, err)
	}
	// The record first, then ended, then the hub: a session whose output ends reads the
	// record.
	s.record = record
	close(s.ended)
	s.hub.close()
	if s.hub.host != nil {
		s.hub.host.over.set()
	}
	if s.server != nil {
		s.server.finish(flushTime)
	}
	if err == nil && !started {
		answer(pipe, notStarted(record, steps))
	}
	return err
}

// serveBy has cloved serve what the agent shares.
func (s *supervisor) serveBy(cloved *client.Client, streams *runtime.IO) {
	share, served := client.NewShare(cloved), attach.NewClient(filepath.Dir(s.socket))
	streams.Kernel, streams.Secrets, streams.Models, streams.Tools = share, share, served, served
}

// refusePatience bounds the wait for the store when a start has failed: that may be
// what the start hung in. The run waits then, and cloved tries it again.
const refusePatience = 10 * time.Second

// refuse ends a run that was not begun, and returns why it was not.
func refuse(launcher Launcher, id agent.ID, cause error) error {
	refused := make(chan error, 1)
	go func() { refused <- launcher.Refuse(id, cause) }()
	select {
	case err := <-refused:
		return errors.Join(cause, err)
	case <-time.After(refusePatience):
		return cause
	}
}

// flush gives what the agent wrote to the log and to the attached sessions, the last line
// without an end too. It may be called again: not every end comes by way of Drained.
func (s *supervisor) flush() {
	s.streams.close()
	for _, lines := range s.lines {
		lines.Close()
	}
}

// notStarted is the answer for an agent that never executed.
func notStarted(record agent.Record, steps []Step) Answer {
	failure := record.Error
	if failure == nil {
		failure = &agent.Failure{Message: "the agent ended before it ran"}
	}
	answer := Answer{Error: startFailure(*failure), Steps: steps}
	answer.Error.Data.Record = &record
	return answer
}

// begin lets an agent that executes be reached.
func (s *supervisor) begin(socket string, live *runtime.Live) {
	if err := s.listen(socket, live); err != nil {
		// The agent runs within its limits; only no caller can reach it.
		s.say("cannot listen: " + err.Error())
	}
	if s.hub.host != nil {
		s.expectHost(live)
	}
	if s.spec.Ready.Within > 0 {
		go live.AwaitReady(s.spec.Ready)
	}
	// gofail: var superviseListening string
	// failpoint(superviseListening, "")

}

// startFailure is a record's failure as an error of the API.
func startFailure(f agent.Failure) *api.Error {
	e := api.Failure(api.CodeConflict, f.Hint, "%s", f.Message)
	e.Data.Step = f.Step
	return e
}

// listen serves the run's socket.
func (s *supervisor) listen(path string, live *runtime.Live) error {
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.server = newServer(s, live, listener)
	return nil
}

// say writes a line of clove's own to the log.
func (s *supervisor) say(text string) {
	_, _ = s.log.Stream(api.StreamClove).Write([]byte(text + "\n"))
}
