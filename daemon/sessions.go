package daemon

import (
	"context"
	"encoding/json"
	"io"

	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/rpc"
)

func isSession(method string) bool {
	m, known := api.Find(method)
	return known && m.Shape == api.ShapeSession
}

// session checks the request and then only carries bytes between the caller
// and the run's supervisor: who is slow holds up nobody else.
func (s *server) session(c *rpc.Conn, peer caller, request rpc.Message) {
	m, _ := api.Find(request.Method)
	var below *rpc.Conn
	_, err := s.daemon.observed(context.Background(), peer, request.Method, request.Params, func(context.Context) (_ any, err error) {
		below, err = s.daemon.reach(peer, m, request)
		return nil, err
	})
	if err != nil {
		_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		return
	}
	defer below.Close()
	if err := below.Send(request); err != nil {
		_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		return
	}
	// Its caller may go while the supervisor takes none of its input, and then
	// nothing is read from it that would end.
	defer c.WhenGone(func() { below.Close() })()
	if m.Name == api.MethodRunAttach {
		// It lasts as long as the agent, which cloved does not wait for.
		defer context.AfterFunc(s.ending, func() { below.Close() })()
	}
	up := make(chan struct{})
	go func() {
		defer close(up)
		// What was read of the caller with its request goes first.
		if _, err := below.Write(c.Buffered()); err == nil {
			_, _ = io.Copy(below, c.Conn)
		}
		below.CloseWrite()
	}()
	_, _ = io.Copy(c.Conn, below.Conn) // either side may go at any time
	below.Close()                      // also ends a write that nobody takes
	c.Close()
	<-up
}

// reach connects to the supervisor of the run that a session is about.
func (d *Daemon) reach(peer caller, m api.Method, request rpc.Message) (*rpc.Conn, error) {
	run, err := d.allow(peer, m, request.Params)
	if err != nil {
		return nil, err
	}
	if request.JSONRPC != rpc.Version || !json.Valid(request.ID) {
		return nil, api.Failure(api.CodeRequest, `say "jsonrpc":"2.0" and an "id"`, "it is no request")
	}
	if err := reachable(run); err != nil {
		return nil, err
	}
	return supervisor.Connect(context.Background(), d.options.Paths.Run, run.Spec.ID)
}
