package runtime

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/kernel/channel"
)

// serveAgain is how long the calls of an agent are refused before the next attempt to have them served.
const serveAgain = 100 * time.Millisecond

// serve has the agent's calls answered until the gate is gone or the run ends. kernel.Serve reads the
// channel while it can. In between calls are refused here; limits and deadlines hold meanwhile.
func (s *share) serve(calls *channel.Conn) {
	away := api.Failure(api.CodeBusy, "ask again with the same key", "cloved is away")
	refuse := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, away }
	for s.ctx.Err() == nil {
		_ = s.kernel.Serve(s.ctx, s.run, calls.File()) // why it has ended changes nothing
		_ = calls.Send(channel.ToGate{Away: away})     // for what was read and not answered
		ctx, cancel := context.WithTimeout(s.ctx, serveAgain)
		err := calls.Serve(ctx, refuse)
		cancel()
		if err != nil {
			return
		}
	}
}

// watched is the channel of an agent whose answers the supervisor looks at: it counts the refusals, and
// tells the run's shadow.
type watched struct {
	share        *share
	gate, served *channel.Conn

	mu    sync.Mutex              // guards the following
	calls map[uint64]channel.Call // that are not answered
}

// watch passes messages on between the gate and the channel that it returns, which is to be served in
// place of the gate's. Both end with the gate.
func (s *share) watch(gate *channel.Conn) (*channel.Conn, error) {
	served, inner, err := channel.Both()
	if err != nil {
		return nil, err
	}
	w := &watched{share: s, gate: gate, served: inner, calls: map[uint64]channel.Call{}}
	go w.up()
	go w.down()
	return served, nil
}

// up passes on what the gate asks.
func (w *watched) up() {
	defer w.served.Close()
	for {
		var m channel.FromGate
		if w.gate.Receive(&m) != nil {
			return
		}
		if m.Call != nil {
			w.enter(*m.Call)
		}
		if w.served.Send(m) != nil {
			return
		}
	}
}

// down passes on the answers.
func (w *watched) down() {
	for {
		var m channel.ToGate
		if w.served.Receive(&m) != nil {
			return
		}
		if m.Answer != nil {
			w.look(*m.Answer)
		}
		_ = w.gate.Send(m) // up notices that the gate is gone
	}
}

// enter notes a call for its answer. A gate that was taken over may ask more than may be in flight:
// these are refused.
func (w *watched) enter(c channel.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) < channel.MaxCalls {
		w.calls[c.Number] = c
	}
}

func (w *watched) look(a channel.Answer) {
	w.mu.Lock()
	call := w.calls[a.Number]
	delete(w.calls, a.Number)
	w.mu.Unlock()
	switch {
	case a.Error == nil:
		w.share.watcher.called(call.Method, call.Params, a.Result)
	case a.Error.Code == api.CodeDenied || a.Error.Code == api.CodeBudget:
		w.share.refusals.add()
	}
}
