package supervisor

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/runtime"
)

// MethodForeground gives the supervisor the connection of the caller for whom a foreground
// run was started: neither needs cloved any longer.
//
//	cloved                              supervisor
//	  │  supervisor.foreground ────────────▶ │  the caller's request, and what it sent behind it
//	  │ ◀──────────────── supervisor.ready   │  or an error, which cloved passes on
//	  │  the connection's descriptor ──────▶ │
//	  (closes its own)                       │ ◀── session ──▶ caller
const MethodForeground = "supervisor.foreground"

// noteReady asks for the descriptor of the connection. It cannot come with the request:
// both sides read lines into a buffer with read(2), which drops descriptors (unix(7)).
const noteReady = "supervisor.ready"

// ForegroundParams are a caller's request, and what it said behind it already.
type ForegroundParams struct {
	ID     json.RawMessage  `json:"id"`
	Attach api.AttachParams `json:"attach"`
	Rest   []byte           `json:"rest,omitempty"`
}

// Foreground hands a caller's connection over to the supervisor at the other end of c.
// With an error the caller is still to be answered.
func Foreground(c, caller *rpc.Conn, request rpc.Message) error {
	p := ForegroundParams{ID: request.ID, Rest: caller.Buffered()}
	if err := json.Unmarshal(request.Params, &p.Attach); err != nil {
		return api.Unreadable(err)
	}
	// A supervisor that hangs must not keep cloved's goroutine, and the caller without an
	// answer.
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return agent.Failed("supervisor", err)
	}
	err := c.Request(MethodForeground, p)
	var m rpc.Message
	if err == nil {
		m, err = c.Receive()
	}
	if err != nil {
		return Gone()
	}
	if m.Method != noteReady {
		return api.ParseError(m.Error)
	}
	socket, err := caller.Conn.(*net.UnixConn).File()
	if err != nil {
		return agent.Failed("connection", err)
	}
	defer socket.Close()
	if err := sendFile(c, request.ID, socket); err != nil {
		return Gone()
	}
	return nil
}

// hostTime is how long a foreground run waits for the caller that it was started for.
const hostTime = 15 * time.Second

// expectHost ends an agent whose caller does not come. It is called in runtime's loop
// (IO.Started), which Stop asks, so each Stop has a goroutine of its own.
func (s *supervisor) expectHost(live *runtime.Live) {
	host := s.hub.host
	// Without a socket no caller can come.
	if s.server == nil {
		host.left.set()
		go live.Stop(0)
		return
	}
	time.AfterFunc(hostTime, func() {
		if host.take() {
			host.left.set()
			_ = live.Stop(0) // it may have ended
		}
	})
}

// hurryHost bounds the wait for a caller that does not read, once a run that is being
// stopped has ended.
func (v *server) hurryHost() {
	host := v.hub.host
	if host == nil {
		return
	}
	go func() {
		<-v.live.Ended()
		select {
		// A caller that reads gets the last output in this time, as an attached one does.
		case <-time.After(flushTime):
		case <-v.ended:
		}
		host.hasty.set()
	}()
}

// foreground takes a caller over and holds its session to the run's end.
func (v *server) foreground(c *rpc.Conn, request rpc.Message) {
	var p ForegroundParams
	if !decode(c, request, &p) {
		return
	}
	if !v.hub.host.take() {
		_ = c.Respond(request.ID, nil, api.Failure(api.CodeConflict, "clove attach joins it", "%s already has a caller in the foreground", v.spec.Name))
		return
	}
	caller, err := receiveCaller(c, p.Rest)
	if err != nil {
		v.desert()
		return
	}
	defer caller.Close()
	v.hub.host.came.set()
	v.serveHost(caller, p)
}

// receiveCaller asks for the connection and reads it where nothing else was sent.
func receiveCaller(c *rpc.Conn, rest []byte) (*rpc.Conn, error) {
	if err := c.Notify(noteReady, api.Nothing{}); err != nil {
		return nil, err
	}
	socket, err := receiveFile(c, "caller")
	if err != nil {
		return nil, err
	}
	defer socket.Close() // the connection has a copy
	conn, err := net.FileConn(socket)
	if err != nil {
		return nil, err
	}
	return rpc.Behind(rest, conn), nil
}

// desert ends a run that has lost its caller, as a foreground run ends with the
// program that supervises it.
func (v *server) desert() {
	v.hub.host.left.set()
	_ = v.live.Stop(0) // it may have ended
}

// serveHost passes output to the caller, and input from the caller to the agent, until the run
// has ended or the caller has gone.
func (v *server) serveHost(caller *rpc.Conn, p ForegroundParams) {
	host := v.hub.host
	v.streams.fit(p.Attach.Size)
	ctx, leave := context.WithCancel(v.context)
	defer leave()
	// Here too: followHost may wait to pass input on, and would not see the connection's
	// end.
	defer caller.WhenGone(func() { leave(); v.desert() })()
	go func() {
		v.followHost(ctx, caller)
		v.desert()
	}()
	go func() {
		select {
		case <-host.hasty.done:
			// Until now a write may wait for ever, as one to a terminal that was stopped.
			_ = caller.SetWriteDeadline(time.Now().Add(flushTime))
		case <-ctx.Done():
		}
	}()
	for piece, more := host.next(); more; piece, more = host.next() {
		if caller.Notify(api.NoteOutput, piece) != nil {
			host.left.set()
		}
	}
	select {
	case <-v.ended:
		if text, err := json.Marshal(v.result()); err == nil {
			_ = caller.Send(rpc.Message{ID: p.ID, Result: text}) // without a time limit, as the pieces
		}
	default: // it has gone
	}
}

// followHost acts on what the caller sends. Input waits beside it for an agent that does
// not read, so that a signal does not.
func (v *server) followHost(ctx context.Context, caller *rpc.Conn) {
	// As many as the caller may have sent without a session.taken. Beyond that the loop
	// waits, and signals with it.
	input := make(chan rpc.Message, api.SessionInputs)
	defer close(input)
	go func() {
		for m := range input {
			v.passInput(ctx, m)
			_ = caller.Notify(api.NoteTaken, api.Nothing{}) // it may have gone
		}
	}()
	listenTo(ctx, caller, v.streams, func(m rpc.Message) bool {
		switch m.Method {
		case api.NoteInput, api.NoteCloseInput:
			if len(m.Params) > inputMost {
				_ = caller.Close() // it breaks the contract
				return true
			}
			select {
			case input <- m:
			case <-ctx.Done():
			}
		case api.NoteSignal:
			v.passSignal(m.Params)
		case api.NoteCloseOutput:
			var p api.SessionStream
			if json.Unmarshal(m.Params, &p) == nil {
				v.hub.host.stopReading(p.Stream)
			}
		default:
			return false
		}
		return true
	})
}

// inputMost bounds one input's text, in bytes: several are held at a time.
const inputMost = 128 << 10

// passInput gives the agent one input, or its end.
func (v *server) passInput(ctx context.Context, m rpc.Message) {
	if m.Method == api.NoteCloseInput {
		v.streams.closeInput()
		return
	}
	var p api.SessionInput
	if json.Unmarshal(m.Params, &p) == nil {
		v.streams.give(ctx, p.Data)
	}
}

// hostSignals are those that a foreground run's supervisor passes to the agent, or acts on.
var hostSignals = []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2}

// passSignal sends this process, and so runtime, a signal that the caller got. After the
// agent's end it can only mean that the caller wants no more output.
func (v *server) passSignal(params json.RawMessage) {
	var p api.SessionSignal
	if json.Unmarshal(params, &p) != nil || !slices.Contains(hostSignals, os.Signal(unix.Signal(p.Signal))) {
		return
	}
	select {
	case <-v.live.Ended():
		v.hub.host.hasty.set()
	default:
	}
	// Runtime acts on signals of its process, as in the foreground of root: so both have
	// the same rules, such as the third ctrl-c.
	_ = unix.Kill(unix.Getpid(), unix.Signal(p.Signal))
}
