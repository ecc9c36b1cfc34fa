package events

import (
	"cmp"
	"strconv"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
)

// Bounds of a chain.
const (
	depthUsual = 10
	depthMost  = 100
)

// trace follows causes from what a caller names, or effects.
func (e *Events) trace(c *service.Call, p api.TraceParams) (result api.TraceResult, out service.Outcome, err error) {
	result.Steps = []api.TraceStep{}
	if p.Depth < 0 || p.Depth > depthMost {
		return result, out, api.Failure(api.CodeParams, "", "ask for 1 to %d steps", depthMost)
	}
	leave, err := e.enter(c)
	if err != nil {
		return result, out, err
	}
	defer leave()
	chain, err := e.chain(c)
	if err != nil {
		return result, out, err
	}
	record, found, err := e.first(c, chain, p.ID)
	if err == nil && !found || err == audit.ErrDeep {
		err = missing(p.ID)
	}
	if err != nil {
		return result, out, err
	}
	depth := cmp.Or(p.Depth, depthUsual)
	if p.Down {
		return e.down(chain, record, depth)
	}
	for ; found && err == nil && len(result.Steps) < depth; record, found, err = chain.Cause(record) {
		result.Steps = append(result.Steps, stepOf(record))
	}
	result.Truncated = found || err == audit.ErrDeep
	return result, out, cmp.Or(unlessDeep(err), e.bodies(result.Steps))
}

// recordsMost bounds what follows from one record.
const recordsMost = 100

// down follows effects from a record: of the end of a run from its start.
func (e *Events) down(chain *audit.Chain, record audit.Entry, depth int) (result api.TraceResult, out service.Outcome, err error) {
	if record.Kind == audit.KindEnd && record.Causation == "" {
		if start, found, err := chain.Cause(record); err == nil && found {
			record = start
		}
	}
	all, more, err := chain.Effects(record, depth, recordsMost)
	for _, effect := range all {
		step := stepOf(effect.Entry)
		step.Depth = effect.Depth
		result.Steps = append(result.Steps, step)
	}
	result.Truncated = more
	return result, out, cmp.Or(err, e.bodies(result.Steps))
}

// first is the record of what a caller names.
func (e *Events) first(c *service.Call, chain *audit.Chain, id string) (record audit.Entry, found bool, err error) {
	number, failed := strconv.ParseUint(id, 10, 64)
	switch {
	case lease.IsID(id):
		return e.message(c, chain, id)
	case agent.ID(id).Valid():
		if record, found, err = chain.Call(id); !found && err == nil {
			record, found, err = chain.Begun(id)
		}
	case failed == nil && e.Event != nil && !c.Agent:
		record, found = e.listed(number)
		switch {
		case found && !chain.May(record):
			found = false
		case checkKind(record.Method) == nil: // its record has more
			record, found, err = chain.Call(record.Causation)
		}
	}
	return record, found, err
}

// message is the call that sent a message, or, where it was taken and came by another id, that which took it.
func (e *Events) message(c *service.Call, chain *audit.Chain, id string) (record audit.Entry, found bool, err error) {
	call := ""
	err = e.engine.Look(c.Caller, func(look *service.Call) error {
		box, err := lease.BoxOf(look.Tx, id)
		if err != nil || box == nil || !c.Root() && (box.Owner != c.UID || c.Agent && box.Of != lease.RunBox(c.UID, c.Run.Spec.ID)) {
			return err
		}
		m, err := lease.Messages.Get(look.Tx, id)
		if m == nil && err == nil {
			m, err = lease.Letters.Get(look.Tx, id)
		}
		if m != nil {
			call = m.Causation
		}
		return err
	})
	if err == nil && call != "" {
		record, found, err = chain.Call(call)
	}
	for _, except := range []string{agents.MailAck.Name, ""} { // what took it is not what sent it
		if err == nil && !found {
			record, found, err = chain.Of(id, except)
		}
	}
	return record, found, err
}

// listed is an event of the list as the audit log would have it.
func (e *Events) listed(number uint64) (record audit.Entry, found bool) {
	o, found := e.Event(number)
	record = audit.Entry{Time: o.Time, Kind: "event", Owner: o.Owner.UID, Agent: o.Name, Run: o.ID, Method: string(o.Kind), What: cmp.Or(o.Detail, string(o.Status)), Causation: o.Causation}
	if o.Kind == agent.RunQueued || o.Kind == agent.RunStarted {
		record.Kind, record.Causation = audit.KindStart, "" // it follows from the call that made the run
	} else if o.Causation == "" {
		record.Kind = audit.KindEnd // it follows from the start of its run
	}
	return record, found
}

func stepOf(r audit.Entry) api.TraceStep {
	s := api.TraceStep{ID: r.Correlation, Time: r.Time, Kind: string(r.Kind), Owner: r.Owner, Namespace: r.Namespace, Agent: r.Agent, Run: r.Run,
		Principal: r.Principal, Method: r.Method, What: r.What, Object: r.Object, Verdict: r.Verdict, Causation: r.Causation}
	if r.Kind == audit.KindStart || r.Kind == audit.KindEnd {
		s.ID = string(r.Run)
	}
	return s
}

// bodies adds those of agents' events.
func (e *Events) bodies(steps []api.TraceStep) error {
	return e.engine.Look(service.Caller{}, func(look *service.Call) error {
		for i := range steps {
			row, err := find(look.Tx, steps[i].ID, func(run agent.ID) bool { return run == steps[i].Run })
			if err != nil {
				return err
			}
			if row != nil {
				steps[i].Body = row.Body
			}
		}
		return nil
	})
}
