package service

import (
	"cmp"
	"encoding/json"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
)

// thenMost bounds the calls that another carries.
const thenMost = 16

// Then does the calls that this one carries, in their order: each passes its own stages, and has an entry of
// its own, in the transaction of this one. Where one is refused the error refuses this one, and nothing has
// changed. They have no keys: a repetition of this call gets their results with its own. Only a method that
// Write made can be carried, and carries nothing itself.
func (c *Call) Then(calls []api.ThenCall) (results []json.RawMessage, out Outcome, err error) {
	switch {
	case len(calls) == 0:
		return nil, out, nil
	case c.carried || c.engine == nil:
		return nil, out, api.Failure(api.CodeParams, "put them beside it", "a call that is carried by another carries none")
	case len(calls) > thenMost:
		return nil, out, api.Failure(api.CodeParams, "", "a call carries at most %d others", thenMost)
	}
	for i, call := range calls {
		result, more, err := c.carry(call)
		if err != nil {
			fault := *api.ErrorOf(err)
			fault.Message = fmt.Sprintf("call %d of then, %.64q: %s", i+1, call.Method, fault.Message)
			return nil, out, &fault
		}
		results = append(results, result)
		out.Add(more)
	}
	return results, out, nil
}

// carry does one call in the transaction of this one.
func (c *Call) carry(call api.ThenCall) (result json.RawMessage, out Outcome, err error) {
	e := c.engine
	m, params, err := e.find(c.Caller, Request{Method: call.Method, Text: call.Params})
	if err != nil {
		return nil, out, err
	}
	if m.mode != writes || m.prepare != nil && !m.carried || m.asks || m.topic != nil && m.topic(c, params) != "" {
		return nil, out, api.Failure(api.CodeParams, "call it by itself", "no call carries %s", m.Name)
	}
	key, err := keyOf(params)
	if err == nil && key != "" {
		err = api.Failure(api.CodeParams, "give the key to the call that carries it", "a call that is carried has no key")
	}
	one := &Call{Caller: c.Caller, Method: m.Name, Tx: c.Tx, Now: c.Now, Context: c.Context, text: append(json.RawMessage{}, call.Params...), engine: e, carried: true}
	one.ID = string(agent.NewID())
	if err == nil {
		one.declared, err = m.declare(params)
	}
	if err == nil {
		err = e.pass(one, stages)
	}
	if err != nil {
		return nil, out, err
	}
	answer, err := m.perform(e, one, params)
	if err = cmp.Or(err, one.out.Refusal); err != nil {
		return nil, out, err
	}
	entry := one.entry(audit.VerdictAllow)
	entry.Causation = cmp.Or(entry.Causation, c.ID)
	if err := Record(one.Tx, entry); err != nil {
		return nil, out, err
	}
	out = one.out
	for i := range out.Events {
		out.Events[i].Call = one.ID
	}
	out.About, out.Reason, out.Rule, out.Object, out.Causation, out.Owner, out.Entry, out.Used = "", "", "", "", "", nil, nil, nil // they are of its own entry
	result, err = json.Marshal(answer)
	return result, out, err
}
