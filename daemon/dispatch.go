package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/traces"
	"clove.run/clove/internal/rpc"
)

// errEnding answers requests that have no end of their own, when cloved ends.
var errEnding = api.Failure(api.CodeDraining, "agents continue to run; try again when cloved is back", "cloved is ending")

// bounded lets a call that has no end of its own end with cloved. Other calls go on when
// cloved ends: they are answered, within drainTime.
func (c *conversation) bounded(ctx context.Context, m api.Method) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return false }
	if m.Shape == api.ShapeStream || m.Name == methods.RunWait.Name || m.Name == methods.KernelCall.Name {
		stop = context.AfterFunc(c.ending, func() { cancel(errEnding) })
	}
	return ctx, func() { stop(); cancel(nil) }
}

// handlerOf finds what serves a request.
func (d dispatcher) handlerOf(name string) (handler, error) {
	m, known := methods.Find(name)
	var fault *api.Error
	switch {
	case !known:
		fault = api.Failure(api.CodeMethod, "", "there is no method %.64q", name)
	// agent.listen is answered by the agent's gate only.
	case m.Access == api.AccessSelf:
		fault = api.Failure(api.CodeDenied, "the agent calls it over its own socket", "%s is for agents alone", name).By("", api.RuleMethods)
	// It is in the table and has no handler: a session (groups.go).
	case d.handlers[name].serve == nil:
		fault = api.Failure(api.CodeSession, "", "%s needs a connection of its own, and to be the first request there", name)
	default:
		return d.handlers[name], nil
	}
	// Here, because perform, which counts the others, needs a method.
	d.meter.Called(name, fault.Data.Word, 0)
	return handler{}, fault
}

// serve gives a request to its method's handler, if its caller may ask for that, and
// returns the text of the result.
func (c *conversation) serve(r task, owed *owed) (json.RawMessage, error) {
	if r.Method == api.MethodCancel {
		// The connection's own affair: a handler knows one call, not the others.
		return nothing, c.cancelRequest(r.Params)
	}
	h, err := c.dispatch.handlerOf(r.Method)
	if err != nil {
		return nil, err
	}
	ctx, done := c.bounded(r.ctx, h.Method)
	defer done()
	result, err := c.perform(ctx, handler{h.Method, func(req *request, p parameters) (any, error) {
		c.dispatch.tracer.About(req, req.run)
		if h.Shape == api.ShapeStream {
			leave, err := c.dispatch.streams.enter(req, c.peer.owner.UID)
			if err != nil {
				return nil, err
			}
			defer leave()
		}
		value, err := h.serve(req, p)
		if err != nil {
			return nil, err
		}
		return c.owes.answer(req, owed, value)
	}}, r.Request)
	text, _ := result.(json.RawMessage) // none with an error
	return text, ended(ctx, err)
}

// ended is the error of a call. One that ended with cloved says so, and not "cancelled", which its caller
// did not ask for.
func ended(ctx context.Context, err error) error {
	if err != nil && faultOf(err).Code == api.CodeCancelled && context.Cause(ctx) == errEnding {
		return errEnding
	}
	return err
}

// perform has a handler answer a request if its caller may ask for that.
func (c *conversation) perform(ctx context.Context, h handler, r rpc.Request) (any, error) {
	d := c.dispatch
	return d.observed(ctx, c.peer, h.Method, r.Params, func(ctx context.Context, p parameters) (_ any, err error) {
		run, err := d.allow(c.peer.principal, h.Method, p)
		call := ""
		if h.Audit != "" {
			call = string(agent.NewID())
		}
		req := &request{Context: ctx, peer: c.peer, method: r.Method, run: run, id: r.ID, call: call, note: c.note}
		defer func() { d.audit(req, h.Method, p, err) }()
		if err != nil {
			return nil, err
		}
		return d.contained(c.peer, r.Method, func() (any, error) { return h.serve(req, p) })
	})
}

// observed decodes and answers a call, and counts and traces that it did. A session counts
// when it is opened.
func (d dispatcher) observed(ctx context.Context, peer caller, m api.Method, text json.RawMessage, answer func(context.Context, parameters) (any, error)) (any, error) {
	began := time.Now()
	p := parameters{text: text}
	p.value, p.wrong = d.contained(peer, m.Name, func() (any, error) { return m.Decode(text) })
	var span traces.Span
	if m.Name != methods.KernelCall.Name { // the agent's call has a span
		ctx, span = d.tracer.Call(ctx, m.Name, peer.owner.UID, p.value)
	}
	result, err := answer(ctx, p)
	code := resultCode(err)
	d.meter.Called(m.Name, code, time.Since(began))
	span.End(code)
	return result, err
}

// contained does one part of a request. A panic in it ends that request only: what one caller
// sends must not end cloved for the others.
func (d dispatcher) contained(peer caller, method string, do func() (any, error)) (result any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			d.log.Error("a request failed with an internal error", "method", method, "peer", peer.String(), "fault", fault, "stack", string(debug.Stack()))
			err = api.Failure(api.CodeInternal, "report it, with what cloved's own log says", "%s failed: a mistake of cloved's", method)
		}
	}()
	return do()
}

var nothing = json.RawMessage("{}")

// cancelRequest ends another request of the connection.
func (c *conversation) cancelRequest(params json.RawMessage) error {
	p, err := methods.Cancel.Decode(params)
	if err == nil {
		c.cancel(p.ID)
	}
	return err
}

// notification acts on a request that wants no answer. It has little time:
// the caller's next request waits for it.
func (c *conversation) notification(r rpc.Request) {
	if r.Method == api.MethodCancel {
		_ = c.cancelRequest(r.Params)
		return
	}
	h := c.dispatch.handlers[r.Method]
	// A stream sends notifications with its request's id, and this has none.
	if h.serve == nil || h.Shape != api.ShapeCall {
		return
	}
	ctx, cancel := context.WithTimeout(c.alive, noteTime)
	defer cancel()
	_, _ = c.perform(ctx, h, r)
}

// noteTime bounds what a notification asks for: the connection reads nothing meanwhile.
const noteTime = 10 * time.Second

// faultOf is an error as one of the closed set. A context that ended comes from any depth,
// so it is looked for here, once for all handlers.
func faultOf(err error) *api.Error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = api.Failure(api.CodeCancelled, "", "the request was cancelled")
	}
	return api.ErrorOf(err)
}
