package supervisor

import (
	"context"
	"encoding/json"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// sessions are the methods that keep their connection: after the request come
// notifications both ways, and the answer is the last line. cloved only passes the
// bytes on, so each of them has to bear a caller that goes, or never reads.
var sessions = map[string]func(v *server, c *rpc.Conn, request rpc.Message){
	methods.RunAttach.Name:  (*server).attach,
	methods.RunExec.Name:    (*server).exec,
	methods.RunCopyIn.Name:  (*server).copyIn,
	methods.RunCopyOut.Name: (*server).copyOut,
	MethodForeground:        (*server).foreground,
	MethodPack:              (*server).pack,
	MethodUnpack:            (*server).unpack,
	MethodSize:              (*server).size,
	MethodRead:              (*server).read,
	MethodWrite:             (*server).write,
	MethodLayer:             (*server).giveLayer,
}

// attach connects a caller to the agent's streams until the caller leaves or the run ends.
// Neither changes anything for the agent.
func (v *server) attach(c *rpc.Conn, request rpc.Message) {
	var p api.AttachParams
	if !decode(c, request, &p) {
		return
	}
	// The last caller's window counts: one terminal has one size.
	v.streams.fit(p.Size)
	ctx, leave := context.WithCancel(v.context)
	defer leave()
	// Input that the agent does not read blocks listenTo, which would not notice that the
	// caller has gone.
	defer c.WhenGone(leave)()
	l := v.hub.join()
	go func() {
		listenTo(ctx, c, v.streams, nil)
		v.hub.leave(l)
	}()
	// It ends when the hub closes, when the caller has gone, and when it detaches.
	for piece := range l.pieces {
		if c.Notify(api.NoteOutput, piece) != nil {
			v.hub.leave(l)
			return
		}
	}
	// A hub that closed with the run did so behind ended: then there is a record.
	result := api.AttachResult{Detached: true}
	select {
	case <-v.ended:
		result = v.result()
	default:
	}
	_ = c.Respond(request.ID, result, nil)
}

// result is a session's answer behind the run's end: ended is closed by then.
func (s *supervisor) result() api.AttachResult {
	return api.AttachResult{ExitCode: s.record.ExitCode, Record: &s.record}
}

// decode reads a session's parameters, or answers that it cannot.
func decode(c *rpc.Conn, request rpc.Message, into any) bool {
	err := api.DecodeParams(request.Params, into)
	if err != nil {
		_ = conclude(c, request, nil, err)
	}
	return err == nil
}

// conclude answers a request with its result or its error. A session ignores that its
// caller has gone meanwhile.
func conclude(c *rpc.Conn, request rpc.Message, result any, err error) error {
	if err != nil {
		return c.Respond(request.ID, nil, api.ErrorOf(err))
	}
	return c.Respond(request.ID, result, nil)
}

// listenTo acts on what the caller of a session sends, until it has gone or detaches. ctx
// ends when it has gone: input that the agent does not read is dropped then. own acts on
// the messages of one kind of session; nil: it has none. A message that cannot be decoded is
// skipped: a session has no answer for a single message.
func listenTo(ctx context.Context, c *rpc.Conn, s *streams, own func(rpc.Message) (known bool)) {
	for {
		m, err := c.Receive()
		if err != nil || m.Method == api.NoteDetach {
			return
		}
		if own != nil && own(m) {
			continue
		}
		switch m.Method {
		case api.NoteInput:
			var p api.SessionInput
			if json.Unmarshal(m.Params, &p) == nil {
				s.give(ctx, p.Data)
			}
		case api.NoteCloseInput:
			s.closeInput()
		case api.NoteResize:
			var p api.SessionSize
			if json.Unmarshal(m.Params, &p) == nil {
				s.fit(&p)
			}
		}
	}
}
