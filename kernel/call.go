package kernel

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// Caller is who calls, and the run that the call is about.
type Caller struct {
	Run   agent.Run
	Agent bool   // the run's own agent calls, otherwise the user
	UID   uint32 // the user
	ID    string // of the call, for what follows from it; empty: the Kernel makes one
}

// principal names the caller as the audit log and grants do.
func (c Caller) principal() string {
	if c.Agent {
		return audit.PrincipalRun(c.Run.Spec.ID)
	}
	return audit.PrincipalUser(c.UID)
}

// giver names the caller as a grant's giver.
func (c Caller) giver() string {
	if c.Agent {
		return string(c.Run.Spec.ID)
	}
	return audit.PrincipalUser(c.UID)
}

// call is one call on its way through the stages.
type call struct {
	Caller
	kernel *Kernel
	tx     *store.KernelTx
	now    time.Time
	about  string // what the call names, for the audit log
	reason string // of a grant, for the audit log
	rule   string // the grant that decided
	// verdict is set by a call that changes nothing and decides.
	verdict string
	events  []agent.RunEvent
	ends    bool // a budget: the run's end follows from this call
	// changed is set by a call that changes grants or budgets; notices are for the agent.
	changed bool
	notices []api.Notice
	// ended are the accounts above the run's of which nothing is left since the call.
	ended []budget.Key
	used  []budget.Amounts // what was spent
	// refusal is set by a call that is refused although it has changed something.
	refusal error
}

// service does one method.
type service struct {
	writes bool
	serve  func(c *call, params json.RawMessage) (any, error)
}

// does makes a service of a function on a method's parameters.
func does[P any](writes bool, serve func(*call, P) (any, error)) service {
	return service{writes, func(c *call, text json.RawMessage) (any, error) {
		var p P
		if err := api.DecodeParams(text, &p); err != nil {
			return nil, err
		}
		return serve(c, p)
	}}
}

// services are the methods. Stages that a method does not need are empty for it.
var services = map[string]service{
	agents.AgentGet.Name:      does(false, (*call).agentGet),
	agents.GrantList.Name:     does(false, (*call).grantList),
	agents.GrantCheck.Name:    does(false, (*call).grantCheck),
	methods.GrantGive.Name:    does(true, (*call).grantGive),
	agents.GrantDerive.Name:   does(true, (*call).grantDerive),
	agents.GrantRevoke.Name:   does(true, (*call).grantRevoke),
	agents.AuditRead.Name:     does(false, (*call).auditRead),
	agents.BudgetGet.Name:     does(false, (*call).budgetGet),
	agents.BudgetReserve.Name: does(true, (*call).budgetReserve),
	agents.BudgetSettle.Name:  does(true, (*call).budgetSettle),
	agents.BudgetRelease.Name: does(true, (*call).budgetRelease),
	agents.BudgetCharge.Name:  does(true, (*call).budgetCharge),
	methods.BudgetRaise.Name:  does(true, (*call).budgetRaise),
	methods.BudgetReset.Name:  does(true, (*call).budgetReset),
	agents.ModelQueue.Name:    does(false, (*call).modelQueue),
}

// Methods are the methods that Call serves.
func Methods() []string {
	var names []string
	for name := range services {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Call is the one function that every call passes. The error is an *api.Error, or becomes
// one (api.ErrorOf).
func (k *Kernel) Call(c Caller, method string, params json.RawMessage) (json.RawMessage, error) {
	c.ID = cmp.Or(c.ID, string(agent.NewID()))
	if a := k.attachmentOf(c.Run.Spec.ID); a != nil && c.Agent {
		a.places <- struct{}{}
		defer func() { <-a.places }()
	}
	began := time.Now()
	on := &call{Caller: c, kernel: k, now: k.now()}
	result, err := k.pass(on, method, params)
	if k.config.Called != nil {
		k.config.Called(c, method, err, time.Since(began))
	}
	switch {
	case err != nil:
		on.refused(method, params, err)
	case on.verdict != "":
		on.checked(method, params)
	}
	return result, err
}

// pass takes a call through the stages.
func (k *Kernel) pass(c *call, method string, params json.RawMessage) (json.RawMessage, error) {
	m, known := methods.Find(method)
	s, served := services[method]
	if !known || !served || c.Agent && !m.ForAgents() || !c.Agent && m.Access == api.AccessSelf {
		return nil, noMethod(known, method)
	}
	if c.Agent {
		if err := ownRun(c.Caller, params); err != nil {
			return nil, err
		}
	}
	// Taints and approvals come here, once there are some.
	if s.writes {
		return k.change(c, method, s, params)
	}
	return k.look(c, s, params)
}

// The names of the stages, as refusals have them.
const (
	stageKnown  = "known"
	stageGrant  = "grant"
	stageBudget = "budget"
)

// noMethod refuses a method that is not there for the caller.
func noMethod(known bool, method string) error {
	err := api.Failure(api.CodeMethod, "", "there is no method %.64q", method).By(stageKnown, "")
	if known {
		err.Data.Rule = api.RuleMethods
	}
	return err
}

// ownRun refuses an agent that names another run than its own.
func ownRun(c Caller, params json.RawMessage) error {
	var p struct {
		Run string `json:"run"`
	}
	if len(params) > 0 && json.Unmarshal(params, &p) != nil {
		return api.Failure(api.CodeParams, "", "the parameters cannot be read")
	}
	if p.Run == "" || p.Run == string(c.Run.Spec.ID) {
		return nil
	}
	return api.Failure(api.CodeNotFound, "leave the run out: an agent calls for itself", "no run %.64q", p.Run).By(stageKnown, api.RuleOwnRun)
}

// look serves a method that changes nothing.
func (k *Kernel) look(c *call, s service, params json.RawMessage) (result json.RawMessage, err error) {
	var answer any
	readErr := k.config.Store.Read(func(tx *store.KernelTx) error {
		c.tx = tx
		answer, err = s.serve(c, params)
		return err
	})
	if err = firstError(err, readErr); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// keyed is what a call has in its parameters to be told from its repetition.
type keyed struct {
	Key string `json:"key"`
}

// kept is the answer to a call with a key.
type kept struct {
	Digest string          `json:"digest"` // of the call
	Result json.RawMessage `json:"result"`
}

// maxKey bounds a key, in bytes.
const maxKey = 64

// change serves a method that changes something: the change, its audit entry and the
// answer that a repetition gets are one transaction.
func (k *Kernel) change(c *call, method string, s service, params json.RawMessage) (result json.RawMessage, err error) {
	var key keyed
	if len(params) > 0 {
		_ = json.Unmarshal(params, &key) // serve reports what cannot be read
	}
	if len(key.Key) > maxKey {
		return nil, api.Failure(api.CodeParams, "", "a key has at most %d bytes", maxKey)
	}
	if err := k.room(); err != nil {
		return nil, err
	}
	digest := digestOf(method, params)
	err = k.update(method, func(tx *store.KernelTx) error {
		*c = call{Caller: c.Caller, kernel: k, tx: tx, now: k.now()} // it may run more than once
		result = nil
		if key.Key != "" {
			var err error
			if result, err = repeated(tx, c.Caller, key.Key, digest); err != nil || result != nil {
				return err
			}
		}
		answer, err := s.serve(c, params)
		if err != nil || c.refusal != nil {
			return err
		}
		if result, err = json.Marshal(answer); err != nil {
			return err
		}
		return c.conclude(method, key.Key, digest, result)
	})
	if err != nil {
		return nil, err
	}
	k.queue.wake()
	c.decided()
	if err := k.publishChange(c); err != nil {
		return nil, err
	}
	return result, c.refusal
}

// publishChange reports what a call changed to the supervisors of all runs that it concerns.
func (k *Kernel) publishChange(c *call) (err error) {
	k.rates.add(c.Run, c.now, c.used...)
	if c.changed {
		err = k.publish(c.Run.Spec.ID, c.notices)
	}
	return firstError(err, k.publishBelow(c.Run.Spec.ID, c.ended...))
}

// decided passes on what happened with a change that is durable.
func (c *call) decided() {
	if c.ends {
		c.kernel.causes.set(c.Run.Spec.ID, c.ID)
	}
	c.note()
}

// conclude keeps the answer to a call with a key, and records the call.
func (c *call) conclude(method, key, digest string, result json.RawMessage) error {
	if key != "" {
		text, err := json.Marshal(kept{digest, result})
		if err != nil {
			return err
		}
		keep := c.tx.PutUsersAnswer
		if c.Agent {
			keep = c.tx.PutAnswer
		}
		if err := keep(c.Run.Spec.ID, c.keptBelow(key), text); err != nil {
			return err
		}
	}
	return firstError(c.tx.ForgetAudit(c.kernel.queue.moved.Load()), record(c.tx, c.entry(method, audit.VerdictAllow, digest)))
}

// keptBelow is where the answer to a call with a key is kept. Each caller has keys of its own:
// otherwise an agent could take the key with which its owner will revoke a grant.
func (c Caller) keptBelow(key string) string { return audit.Digest([]byte(c.principal() + " " + key)) }

// repeated returns the answer that an earlier call with this key got; nil: there was none.
func repeated(tx *store.KernelTx, c Caller, key, digest string) (json.RawMessage, error) {
	text, err := tx.Answer(c.Run.Spec.ID, c.keptBelow(key))
	if err != nil || text == nil {
		return nil, err
	}
	var first kept
	if err := json.Unmarshal(text, &first); err != nil {
		return nil, err
	}
	if first.Digest != digest {
		return nil, api.Failure(api.CodeConflict, "take another key for another call", "another call had the key %.64q", key)
	}
	return first.Result, nil
}

// digestOf is that of a method and its parameters.
func digestOf(method string, params json.RawMessage) string {
	var compact bytes.Buffer
	if json.Compact(&compact, params) != nil {
		compact.Write(params)
	}
	return audit.Digest(append([]byte(method+" "), compact.Bytes()...))
}

// entry is the audit entry of the call.
func (c *call) entry(method, verdict, digest string) audit.Entry {
	kind := audit.KindDecision
	if !c.Agent {
		kind = audit.KindAdmin
	}
	return audit.Entry{Time: c.now, Kind: kind, Owner: c.Run.Owner.UID, Namespace: c.Run.Spec.Kernel.Namespace, Agent: c.Run.Spec.Name,
		Run: c.Run.Spec.ID, Principal: c.principal(), Method: method, What: c.about, Reason: c.reason, Verdict: verdict, Rule: c.rule, Digest: digest, Correlation: c.ID}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
