package events

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
)

// Events is the service. Serve comes before its methods are called.
type Events struct {
	// Dir is where the audit log lies.
	Dir string
	// Run returns a run by its id; nil: there is only the caller's.
	Run func(agent.ID) (agent.Run, bool)
	// Event returns an event of the list of events by its number; nil: there is no list.
	Event func(number uint64) (agent.RunEvent, bool)

	engine *service.Engine
	places map[bool]chan struct{} // of walks through the log, for agents and for users
}

// New makes a service without an engine.
func New(e Events) *Events {
	e.places = map[bool]chan struct{}{true: make(chan struct{}, 1), false: make(chan struct{}, 2)}
	return &e
}

// Serve gives the service its engine.
func (e *Events) Serve(engine *service.Engine) { e.engine = engine }

// Service returns its methods.
func (e *Events) Service() *service.Service {
	one := func(api.EventAppendParams) (budget.Amounts, error) { return budget.Amounts{budget.Messages: 1}, nil }
	about := func(p api.EventAppendParams) string { return short(p.Kind) }
	return service.New("event", Rows).On(
		service.Prepared(agents.EventAppend, service.Stages[api.EventAppendParams]{Costs: one, About: about}, e.look, e.append, nil).Carried(),
		service.Stream(agents.EventTrace, e.trace),
		service.Stream(methods.AuditTrace, e.trace))
}

// short is a kind as the audit log has it.
func short(kind string) string { return kind[:min(len(kind), kindMost)] }

// look searches the audit log for the call that an event follows from, if it names no event and no message, and
// returns its id where there is one that the agent may see.
func (e *Events) look(c *service.Call, p api.EventAppendParams) (call string, err error) {
	if p.Causation == "" || !agent.ID(p.Causation).Valid() {
		return "", nil
	}
	err = e.engine.Look(c.Caller, func(look *service.Call) (err error) {
		call, err = e.kept(look, p.Causation)
		return err
	})
	if call != "" || err != nil {
		return "", err
	}
	leave, err := e.enter(c)
	if err != nil {
		return "", err
	}
	defer leave()
	chain, err := e.chain(c)
	if err != nil {
		return "", err
	}
	_, found, err := chain.Call(p.Causation)
	if found {
		call = p.Causation
	}
	return call, unlessDeep(err)
}

func (e *Events) append(c *service.Call, p api.EventAppendParams, seen string) (result api.EventAppendResult, out service.Outcome, err error) {
	out.About = short(p.Kind)
	if err := checkKind(p.Kind); err != nil {
		return result, out, err
	}
	body, err := compact(p.Body)
	if err != nil {
		return result, out, err
	}
	row := &Row{Run: c.Run.Spec.ID, ID: c.ID, Kind: p.Kind, Body: body, Time: c.Now.UTC()}
	if p.Causation != "" {
		row.Causation, err = e.kept(c, p.Causation)
		if row.Causation == "" && seen == p.Causation {
			row.Causation = seen
		}
		if row.Causation == "" && err == nil {
			err = missing(p.Causation)
		}
	}
	if err != nil {
		return result, out, err
	}
	out.Causation = row.Causation
	out.Events = append(out.Events, service.Event{Kind: agent.RunEventKind(p.Kind), Detail: cut(string(body)), Bounded: true, Bound: kindPrefix})
	return api.EventAppendResult{ID: c.ID}, out, add(c.Tx, row)
}

// detailMost bounds what the list of events has of a body, in bytes.
const detailMost = 256

func cut(text string) string {
	if len(text) > detailMost {
		return text[:detailMost] + "…"
	}
	return text
}

func compact(body json.RawMessage) (json.RawMessage, error) {
	if len(body) == 0 {
		return nil, nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, body) != nil || compact.Len() > api.EventBodyMost {
		return nil, api.Failure(api.CodeTooLarge, "leave out what a file can have", "the body of an event is JSON of at most %d bytes", api.EventBodyMost)
	}
	return compact.Bytes(), nil
}

func missing(id string) error {
	return api.Failure(api.CodeNotFound, "events, messages and the audit log have ids; what happened long ago is not searched", "no event, call or message %.64q", id)
}

// kept returns the id of the call that appended an event or sent a message which kernel.db has and the agent may
// see; empty: there is none.
func (e *Events) kept(c *service.Call, id string) (call string, err error) {
	row, err := find(c.Tx, id, func(run agent.ID) bool { return e.sees(c.Caller, run) })
	if err != nil {
		return "", err
	}
	if row != nil {
		return row.ID, nil
	}
	m, err := lease.Find(c.Tx, lease.RunBox(c.Run.Owner.UID, c.Run.Spec.ID), id)
	if m != nil {
		call = m.Causation
	}
	return call, err
}

// sees reports whether an agent sees a run: its own, and those below it.
func (e *Events) sees(c service.Caller, run agent.ID) bool {
	if run == c.Run.Spec.ID {
		return true
	}
	if e.Run == nil {
		return false
	}
	other, found := e.Run(run)
	return found && other.Descends(c.Run.Spec.ID)
}

// may reports whether there is a record for a caller. An agent also sees what sent it a message.
func (e *Events) may(c service.Caller) func(audit.Entry) bool {
	if !c.Agent {
		return func(r audit.Entry) bool { return c.Root() || r.Owner == c.UID }
	}
	box := lease.RunBox(c.Run.Owner.UID, c.Run.Spec.ID).ID() + "/"
	return func(r audit.Entry) bool {
		return r.Owner == c.Run.Owner.UID && (r.Run != "" && e.sees(c, r.Run) || r.Verdict == audit.VerdictAllow && strings.HasPrefix(r.Object, box))
	}
}

// glance is the part of may that a line shows before it is read; nil: nothing.
func (e *Events) glance(c service.Caller) func(agent.ID, []byte) bool {
	if !c.Agent {
		return nil
	}
	owner, box := fmt.Appendf(nil, `"owner":%d,`, c.Run.Owner.UID), []byte(lease.RunBox(c.Run.Owner.UID, c.Run.Spec.ID).ID()+"/")
	return func(run agent.ID, line []byte) bool {
		return bytes.Contains(line, owner) && (run != "" && e.sees(c, run) || bytes.Contains(line, box))
	}
}

// Bounds of what is read of the log for one call.
const (
	forAgents = 32 << 20
	forUsers  = 1 << 30
)

// chain is that of a caller.
func (e *Events) chain(c *service.Call) (*audit.Chain, error) {
	most := int64(forUsers)
	if c.Agent {
		most = forAgents
	}
	queued, err := e.engine.Queued()
	return &audit.Chain{Dir: e.Dir, Queued: queued, May: e.may(c.Caller), Glance: e.glance(c.Caller), Most: most}, err
}

// enter waits for a place to read the log.
func (e *Events) enter(c *service.Call) (leave func(), err error) {
	places := e.places[c.Agent]
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-c.Context.Done():
		return nil, c.Context.Err()
	}
}

// unlessDeep leaves out the error of a search that has come to its bound.
func unlessDeep(err error) error {
	if err == audit.ErrDeep {
		return nil
	}
	return err
}
