package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// Call is one call on its way through the stages. It is valid until the method returns.
type Call struct {
	Caller
	Method string
	Tx     *store.KernelTx // nil for a method that acts, or is a stream
	Now    time.Time
	// Context ends with the request. It is for streams, and for what is prepared.
	Context context.Context

	declared Declared
	rules    []string // the grants that covered
	key      string
	text     json.RawMessage // the parameters as they came
	parked   time.Time       // when it began to wait for its topic; zero: it has not waited
	digested string          // the digest, once it was needed
	prepared any             // by the method, before its transaction
	engine   *Engine         // nil: the call carries no others
	carried  bool            // by another call
	activity *activity       // of the agent; nil: it is not ended for being idle
	asks     bool            // people are asked where no grant covers it
	// peopleOnly says that there are no grants for the method.
	peopleOnly bool
	// uncovered says that no grant covers the call, and that people are asked about it. approved says that they have
	// allowed it, and bound is the digest that their answer holds for.
	uncovered, approved bool
	bound               string
	out                 Outcome
}

// Waited is how long the call has waited for its topic.
func (c *Call) Waited() time.Duration {
	if c.parked.IsZero() {
		return 0
	}
	return time.Since(c.parked)
}

// digest is that of the method and its parameters; empty: no caller sent any.
func (c *Call) digest() string {
	if c.digested == "" && c.text != nil {
		c.digested = digestOf(c.Method, c.text)
	}
	return c.digested
}

// Request is what a caller sends.
type Request struct {
	Method string
	Text   json.RawMessage // the parameters as they came
	Params any             // decoded, of the row's type; nil: the engine decodes Text
}

// The names of the stages, as refusals have them.
const (
	StageKnown    = "known"
	StageGrant    = "grant"
	StageTaints   = "taints"
	StageBudget   = "budget"
	StageApproval = "approval"
)

// digestOf is that of a method and its parameters.
func digestOf(method string, params json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, params) != nil {
		compact.Write(params)
	}
	return audit.Digest(append([]byte(method+" "), compact.Bytes()...))
}

// Digest is that of a method and what it names, for entries of calls that have no parameters.
func Digest(method, about string) string { return digestOf(method, []byte(about)) }

// entry is the audit entry of the call.
func (c *Call) entry(verdict string) audit.Entry {
	kind := audit.KindDecision
	if !c.Agent {
		kind = audit.KindAdmin
	}
	owner := c.owner()
	if c.out.Owner != nil {
		owner = *c.out.Owner
	}
	return audit.Entry{Time: c.Now, Kind: kind, Owner: owner, Namespace: c.Run.Spec.Kernel.Namespace, Agent: c.Run.Spec.Name,
		Run: c.Run.Spec.ID, Principal: c.Principal(), Method: c.Method, What: cmp.Or(c.out.About, c.declared.About), Reason: c.out.Reason, Verdict: verdict,
		Rule: cmp.Or(c.out.Rule, strings.Join(c.rules, " ")), Object: c.out.Object, Digest: c.digest(), Causation: c.out.Causation, Correlation: c.ID}
}

// Entry is the audit entry of what a service does by itself in the transaction of the call.
func (c *Call) Entry(method, about, verdict string) audit.Entry {
	by := Call{Caller: c.Caller, Method: method, Now: c.Now, out: Outcome{About: about}}
	return by.entry(verdict)
}

// find returns the method that a caller asks for, and its decoded parameters.
func (e *Engine) find(c Caller, r Request) (m Method, params any, err error) {
	m, served := e.methods[r.Method]
	if !served || !m.exists(c) {
		_, known := methods.Find(r.Method)
		return m, nil, noMethod(known, r.Method)
	}
	if params = r.Params; params == nil {
		if params, err = m.Decode(r.Text); err != nil {
			return m, nil, err
		}
	}
	if c.Agent {
		err = ownRun(c, params)
	}
	return m, params, err
}

// noMethod refuses a method that is not there for the caller.
func noMethod(known bool, method string) error {
	err := api.Failure(api.CodeMethod, "", "there is no method %.64q", method).By(StageKnown, "")
	if known {
		err.Data.Rule = api.RuleMethods
	}
	return err
}

// ownRun refuses an agent that names another run than its own.
func ownRun(c Caller, params any) error {
	p, names := params.(interface{ AboutRun() string })
	if !names || p.AboutRun() == "" || p.AboutRun() == string(c.Run.Spec.ID) {
		return nil
	}
	return api.Failure(api.CodeNotFound, "leave the run out: an agent calls for itself", "no run %.64q", p.AboutRun()).By(StageKnown, api.RuleOwnRun)
}

// newCall is a call that has passed no stage.
func (e *Engine) newCall(ctx context.Context, c Caller, r Request) *Call {
	c.ID = cmp.Or(c.ID, string(agent.NewID()))
	if r.Text == nil {
		r.Text = json.RawMessage{}
	}
	return &Call{Caller: c, Method: r.Method, Now: e.now(), Context: ctx, text: r.Text, engine: e, activity: e.activityOf(c)}
}

// again empties a call for another transaction.
func (c *Call) again(tx *store.KernelTx, now time.Time) {
	*c = Call{Caller: c.Caller, Method: c.Method, Tx: tx, Now: now, declared: c.declared, Context: c.Context, key: c.key, text: c.text, parked: c.parked, digested: c.digested, prepared: c.prepared, engine: c.engine, activity: c.activity,
		asks: c.asks, peopleOnly: c.peopleOnly, approved: c.approved, bound: c.bound}
}
