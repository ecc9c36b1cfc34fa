package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"runtime/debug"

	"github.com/creachadair/jrpc2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// call is one request on its way to its handler.
type call struct {
	context.Context
	*Daemon
	peer caller
	run  agent.Run // of a method with AccessOwner: the run that it is about
	id   any       // of the request, for its notifications
	note func(method string, params any) error
}

// handler answers a call with its result.
type handler func(c *call, params json.RawMessage) (any, error)

// handle decodes a method's parameters, in which nothing may be unknown.
func handle[P any](serve func(*call, P) (any, error)) handler {
	return func(c *call, text json.RawMessage) (any, error) {
		var p P
		if err := decodeParams(text, &p); err != nil {
			return nil, err
		}
		return serve(c, p)
	}
}

func decodeParams(text json.RawMessage, into any) error {
	if len(text) == 0 {
		text = json.RawMessage("{}")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return api.Failure(api.CodeParams, "docs/api.md lists each method's parameters", "the parameters cannot be read: %v", err)
	}
	return nil
}

// allow is the one gate between a caller and a method. What the caller does
// not own is not there, so that nobody learns what others run.
func (d *Daemon) allow(peer caller, m api.Method, params json.RawMessage) (agent.Run, error) {
	switch m.Access {
	case api.AccessRoot:
		if !peer.root() {
			return agent.Run{}, api.Failure(api.CodeDenied, "use sudo", "%s is for root", m.Name)
		}
	case api.AccessOwner:
		var p api.RunParams
		if len(params) > 0 {
			if err := json.Unmarshal(params, &p); err != nil {
				return agent.Run{}, api.Failure(api.CodeParams, "docs/api.md lists each method's parameters", "the parameters cannot be read: %v", err)
			}
		}
		if p.Run == "" {
			return agent.Run{}, api.Failure(api.CodeParams, `say "run":"NAME"`, "no run is named")
		}
		if err := d.cache.refresh(); err != nil {
			return agent.Run{}, err
		}
		run, err := d.cache.resolve(p.Run, peer.sees)
		if err == nil && !ofRecords[m.Name] {
			err = run.CheckOwn()
		}
		return run, err
	}
	return agent.Run{}, nil
}

// ofRecords are the methods about one run that want no more of it than its
// record, which is all that there is of an engine's container.
var ofRecords = map[string]bool{api.MethodRunGet: true, api.MethodRunWait: true, api.MethodRunRemove: true}

// assigner finds a connection's handlers.
type assigner struct {
	daemon *Daemon
	peer   caller
	ending context.Context // ends when cloved is to end
	owes   *ledger         // of its connection
}

// errEnding answers who waits for something that may never come.
var errEnding = api.Failure(api.CodeDraining, "the agents go on; ask again when cloved is back", "cloved is ending")

// bounded lets a call that has no end of its own end with cloved.
func (a assigner) bounded(ctx context.Context, m api.Method) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return false }
	if m.Shape == api.ShapeStream || m.Name == api.MethodRunWait {
		stop = context.AfterFunc(a.ending, func() { cancel(errEnding) })
	}
	return ctx, func() { stop(); cancel(nil) }
}

// Assign wraps the handler of a method with its access rule.
func (a assigner) Assign(_ context.Context, name string) jrpc2.Handler {
	m, known := api.Find(name)
	serve := handlers[name]
	switch {
	case name == api.MethodCancel:
		return cancelRequest
	case !known:
		return a.refusal(name, api.Failure(api.CodeMethod, "docs/api.md lists the methods", "there is no method %.64q", name))
	case serve == nil:
		return a.refusal(name, api.Failure(api.CodeSession, "open another connection for it", "%s needs a connection of its own, and to be the first request there", name))
	}
	return func(ctx context.Context, r *jrpc2.Request) (any, error) {
		if r.IsNotification() {
			// Among the calls of a batch; alone it never comes here.
			a.notification(ctx, name, json.RawMessage(r.ParamString()))
			return nil, nil
		}
		params := json.RawMessage(r.ParamString())
		ctx, done := a.bounded(ctx, m)
		defer done()
		server := jrpc2.ServerFromContext(ctx)
		c := &call{Daemon: a.daemon, peer: a.peer, id: json.RawMessage(r.ID())}
		c.note = func(method string, params any) error { return server.Notify(ctx, method, params) }
		result, err := a.daemon.observed(ctx, a.peer, name, params, func(ctx context.Context) (_ any, err error) {
			c.Context = ctx
			if c.run, err = a.daemon.allow(a.peer, m, params); err != nil {
				return nil, err
			}
			a.daemon.tracer.About(ctx, c.run)
			if m.Shape == api.ShapeStream {
				leave, err := a.daemon.streams.enter(ctx, a.peer.owner.UID)
				if err != nil {
					return nil, err
				}
				defer leave()
			}
			return a.daemon.answer(c, name, func(c *call, params json.RawMessage) (any, error) {
				value, err := serve(c, params)
				if err != nil {
					return nil, err
				}
				return a.owes.answer(ctx, r.ID(), value)
			}, params)
		})
		if err != nil && context.Cause(ctx) == errEnding {
			err = errEnding
		}
		if err != nil {
			return nil, onWire(err)
		}
		return result, nil
	}
}

// answer serves one request. A mistake of cloved's own in it is that request's
// end, and nobody else's.
func (d *Daemon) answer(c *call, method string, serve handler, params json.RawMessage) (result any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			d.log.Error("a request failed that should not", "method", method, "peer", c.peer.String(), "fault", fault, "stack", string(debug.Stack()))
			err = api.Failure(api.CodeInternal, "report it, with what cloved's own log says", "%s failed: a mistake of cloved's", method)
		}
	}()
	return serve(c, params)
}

// refusal answers what has no handler.
func (a assigner) refusal(name string, fault *api.Error) jrpc2.Handler {
	return func(context.Context, *jrpc2.Request) (any, error) {
		a.daemon.meter.Called(name, fault.Data.Word, 0)
		return nil, onWire(fault)
	}
}

// cancelRequest ends another request of the connection.
func cancelRequest(ctx context.Context, r *jrpc2.Request) (any, error) {
	var p api.CancelParams
	if err := decodeParams(json.RawMessage(r.ParamString()), &p); err != nil {
		return nil, onWire(err)
	}
	jrpc2.ServerFromContext(ctx).CancelRequest(string(p.ID))
	return api.Nothing{}, nil
}

// notification acts on a request that wants no answer. It has little time:
// the caller's next request waits for it.
func (a assigner) notification(ctx context.Context, method string, params json.RawMessage) {
	m, known := api.Find(method)
	serve := handlers[method]
	if !known || serve == nil || m.Shape != api.ShapeCall {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	_, _ = a.daemon.observed(ctx, a.peer, method, params, func(ctx context.Context) (any, error) {
		run, err := a.daemon.allow(a.peer, m, params)
		if err != nil {
			return nil, err
		}
		return a.daemon.answer(&call{Context: ctx, Daemon: a.daemon, peer: a.peer, run: run}, method, serve, params)
	})
}

// faultOf is an error as one of the closed set.
func faultOf(err error) *api.Error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = api.Failure(api.CodeCancelled, "", "the request was cancelled")
	}
	return api.ErrorOf(err)
}

// onWire gives the library an error of the closed set.
func onWire(err error) error {
	fault := faultOf(err)
	data, merr := json.Marshal(fault.Data)
	if merr != nil {
		return merr
	}
	return &jrpc2.Error{Code: jrpc2.Code(fault.Code), Message: fault.Message, Data: data}
}
