package supervisor

import (
	"bytes"
	"encoding/json"

	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// sessions are the methods that keep their connection.
var sessions = map[string]func(v *server, c *rpc.Conn, request rpc.Message){
	api.MethodRunAttach:  (*server).attach,
	api.MethodRunExec:    (*server).exec,
	api.MethodRunCopyIn:  (*server).copyIn,
	api.MethodRunCopyOut: (*server).copyOut,
	MethodLayer:          (*server).giveLayer,
}

// attach joins a caller with the agent's streams until one of them has enough.
// The agent notices neither.
func (v *server) attach(c *rpc.Conn, request rpc.Message) {
	var p api.AttachParams
	if !decode(c, request, &p) {
		return
	}
	if p.Size != nil {
		_ = v.streams.resize(*p.Size) // a size that does not fit is no reason to refuse
	}
	l := v.hub.join()
	detached := make(chan struct{})
	go func() {
		listenTo(c, v.streams)
		v.hub.leave(l)
		close(detached)
	}()
	if v.relay(c, l, detached) != nil {
		v.hub.leave(l)
		return
	}
	result := api.AttachResult{Detached: true}
	select {
	case <-v.ended:
		result = api.AttachResult{ExitCode: v.record.ExitCode}
	default:
	}
	_ = c.Respond(request.ID, result, nil)
}

// decode reads a session's parameters, or answers that it cannot.
func decode(c *rpc.Conn, request rpc.Message, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(request.Params))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if err != nil {
		_ = c.Respond(request.ID, nil, api.Failure(api.CodeParams, "docs/api.md lists each method's parameters", "the parameters cannot be read: %v", err))
	}
	return err == nil
}

// conclude answers a session with its result or its error.
func conclude(c *rpc.Conn, request rpc.Message, result any, err error) {
	if err != nil {
		_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		return
	}
	_ = c.Respond(request.ID, result, nil)
}

// relay sends pieces until the output or the caller ends.
func (v *server) relay(c *rpc.Conn, l *listener, detached <-chan struct{}) error {
	for {
		select {
		case piece, more := <-l.pieces:
			if !more {
				return nil
			}
			if err := c.Notify(api.NoteOutput, piece); err != nil {
				return err
			}
		case <-detached:
			select {
			case <-v.ended: // what is left is the last output
				detached = nil
			default:
				return nil
			}
		}
	}
}

// listenTo acts on what the caller of a session says, until it has gone or
// detaches.
func listenTo(c *rpc.Conn, s *streams) {
	for {
		m, err := c.Receive()
		if err != nil || m.Method == api.NoteDetach {
			return
		}
		switch m.Method {
		case api.NoteInput:
			var p api.SessionInput
			if json.Unmarshal(m.Params, &p) == nil && s.input != nil {
				_, _ = s.input.Write(p.Data) // the agent may have closed it
			}
		case api.NoteCloseInput:
			s.closeInput()
		case api.NoteResize:
			var p api.SessionSize
			if json.Unmarshal(m.Params, &p) == nil {
				_ = s.resize(p)
			}
		}
	}
}
