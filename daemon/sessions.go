package daemon

import (
	"bytes"
	"context"
	"io"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/rpc"
)

// isSession reports whether a method keeps its connection to itself.
func isSession(method string) bool {
	m, known := methods.Find(method)
	return known && m.Shape == api.ShapeSession
}

// session checks the request and then only carries bytes between the caller
// and the run's supervisor, so a slow caller holds up only itself.
func (s *server) session(c *rpc.Conn, peer caller, request rpc.Message) {
	m, _ := methods.Find(request.Method)
	var run agent.Run
	var inside string // of a copy
	var below *rpc.Conn
	var foreground bool // it is the run.attach of a foreground run's own caller
	// Counted and traced is the way to the supervisor. The session itself may last for
	// days.
	_, err := s.dispatch.observed(context.Background(), peer, m, request.Params, func(_ context.Context, p parameters) (_ any, err error) {
		run, below, err = s.reach(peer, m, p)
		switch p := p.value.(type) {
		case api.AttachParams:
			foreground = p.Foreground
		case api.CopyParams:
			inside = string(p.Path)
		}
		return nil, err
	})
	if err != nil {
		_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		return
	}
	if below == nil {
		s.layers.copyOut(c, peer, request, run, inside)
		return
	}
	defer below.Close()
	if foreground {
		// The supervisor gets a descriptor of the connection. When this returns, cloved
		// closes its own, and the two go on without it.
		if err := supervisor.Foreground(below, c, request); err != nil {
			_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		}
		return
	}
	if err := below.Send(request); err != nil {
		if rpc.IsGone(err) {
			err = supervisor.Gone()
		}
		_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		return
	}
	// While the supervisor takes no input, nothing is read from the caller, and its end
	// would not be noticed.
	defer c.WhenGone(func() { below.Close() })()
	if m.Name == methods.RunAttach.Name {
		// The session can last as long as the agent; cloved does not wait for that when it ends.
		defer context.AfterFunc(s.ending, func() { below.Close() })()
	}
	up := make(chan struct{})
	go func() {
		defer close(up)
		// Bytes that were read together with the request come first.
		if _, err := below.Write(c.Buffered()); err == nil {
			// Past the buffer of c: its bytes are written, and nothing of a session is
			// read by lines here.
			_, _ = io.Copy(below, c.Conn)
		}
		// The supervisor must see the end of what the caller says, and can still answer.
		below.CloseWrite()
	}()
	down := lines{to: c.Conn}
	_, err = io.Copy(&down, below.Conn) // either side may go at any time
	if (err == nil || rpc.IsGone(err)) && !down.answered {
		_ = c.Respond(request.ID, nil, api.ErrorOf(supervisor.Gone()))
	}
	below.Close() // also ends a write that the supervisor does not read
	c.Close()
	<-up
}

// reach connects to the supervisor of the run that a session is about. A copy from a run at rest
// needs none.
func (s *server) reach(peer caller, m api.Method, p parameters) (run agent.Run, below *rpc.Conn, err error) {
	run, err = s.dispatch.allow(peer.principal, m, p)
	defer func() { s.dispatch.audit(&request{peer: peer, run: run}, m, p, err) }()
	if err == nil && m.Name == methods.RunCopyOut.Name && atRest(run) {
		return run, nil, nil
	}
	if err == nil {
		err = reachable(run)
	}
	if err == nil {
		below, err = supervisor.Connect(context.Background(), s.supervisors.runDir, run.Spec.ID)
	}
	return run, below, err
}

// lines passes bytes on and notices a response among them: it is the only message of a
// session that has an id. If the supervisor dies there is none, and cloved answers.
type lines struct {
	to       io.Writer
	begun    []byte // of the current line, as far as it is compared with answerBegins
	answered bool
}

// answerBegins is how rpc.Conn writes a response.
var answerBegins = []byte(`{"jsonrpc":"2.0","id":`)

// Write compares only the beginning of each line, so that the output of an agent, which may
// be megabytes, is not looked through.
func (l *lines) Write(data []byte) (int, error) {
	for rest := data; len(rest) > 0; {
		line, more, ends := bytes.Cut(rest, []byte("\n"))
		if free := len(answerBegins) - len(l.begun); free > 0 {
			l.begun = append(l.begun, line[:min(free, len(line))]...)
		}
		l.answered = l.answered || bytes.Equal(l.begun, answerBegins)
		if ends {
			l.begun = l.begun[:0]
		}
		rest = more
	}
	return l.to.Write(data)
}
