package approvals

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Approvals is the service.
type Approvals struct {
	// Run returns a run by its id; nil: there is only the caller's.
	Run func(agent.ID) (agent.Run, bool)
	// CheckNet refuses a network rule that a run of the owner's could not start with; nil: it is not checked.
	CheckNet func(rule agent.EgressRule, owner agent.Owner) error
	// Grants gives a run what people allow.
	Grants interface {
		Give(c *service.Call, scope, reason string, expires time.Time) (id string, out service.Outcome, err error)
	}
	// Answered does the agent's call that waited for an answer, when that is durable.
	Answered func(service.Question) error
	// Budgets gives a run more of what it may spend.
	Budgets Budgets
	// Secret refuses a use of a secret that would be refused also after a yes, and is else what people are asked about it.
	Secret func(c *service.Call, run agent.Run, use api.SecretUseParams) (what string, err error)
	// Counted gets each question that was asked, and how each ended; nil: they are not counted.
	Counted func(kind api.ApprovalKind, outcome string)
	// Approvers are the users who may see and answer questions of all runs, beside root; nil: there are none.
	Approvers func() []uint32
	// Due is called with the time at which a question ends.
	Due func(time.Time)
}

// Service returns its methods.
func (a *Approvals) Service() *service.Service {
	return service.New("approval", Rows).On(
		service.Write(methods.ApprovalAsk, service.Stages[api.ApprovalAskParams]{}, a.ask),
		service.Write(methods.ApprovalUse, service.Stages[api.ApprovalUseParams]{}, a.use),
		service.Wait(methods.ApprovalGet, service.Stages[api.ApprovalGetParams]{}, func(_ *service.Call, p api.ApprovalGetParams) service.Topic { return topic(p.ID) }, a.get),
		service.Read(methods.ApprovalList, service.Stages[api.ApprovalListParams]{}, a.list),
		service.Write(methods.ApprovalRespond, service.Stages[api.ApprovalRespondParams]{}, a.respond),
		service.Read(agents.ApprovalOwn, service.Stages[api.ApprovalOwnParams]{}, a.own),
		service.Write(agents.ApprovalCancel, service.Stages[api.ApprovalCancelParams]{}, a.cancel),
	)
}

func noQuestion(id string) error {
	return api.Failure(api.CodeNotFound, "clove approvals lists them", "no question %.64q", id)
}

// enter stores a question, unless the run has an equal one whose answer holds.
func (a *Approvals) enter(c *service.Call, run agent.Run, made Row, lastsFor time.Duration, out *service.Outcome) (*Row, error) {
	of, err := Rows.Below(c.Tx, store.RunKey(run.Spec.ID, ""))
	if err != nil {
		return nil, err
	}
	if made.Budget != nil {
		if r, err := a.equalBudget(c, &made); err != nil || r != nil {
			return r, err
		}
	}
	for _, r := range of {
		if made.Budget == nil && r.same(&made) && r.holds(c.Now) {
			return r, nil
		}
	}
	if err := forgetOldest(c.Tx, of); err != nil {
		return nil, err
	}
	made.ID, made.State, made.Run, made.Agent, made.Owner, made.Namespace = string(agent.NewID()), api.ApprovalWaits, run.Spec.ID, run.Spec.Name, run.Owner.UID, run.Spec.Kernel.Namespace
	if people := run.Spec.Kernel.People(string(made.Kind)); people > 1 {
		made.Needed = people
	}
	made.Asked, made.Expires = c.Now.UTC(), c.Now.Add(lastsFor).UTC()
	if b := made.Budget; b != nil && !b.Until.IsZero() && b.Until.Before(made.Expires) {
		made.Expires = b.Until
	}
	made.Digest = digest(made.Approval)
	a.happened(out, &made, agent.RunAsked, made.What, OutcomeAsked)
	return &made, Rows.Put(c.Tx, &made)
}

// forgetOldest makes place for one more question of a run.
func forgetOldest(tx *store.KernelTx, of []*Row) error {
	if len(of) < rowsMost {
		return nil
	}
	slices.SortFunc(of, func(a, b *Row) int { return a.Asked.Compare(b.Asked) })
	for _, r := range of {
		if r.State != api.ApprovalWaits {
			return Rows.Delete(tx, Rows.Key(r))
		}
	}
	return nil
}

func (a *Approvals) ask(c *service.Call, p api.ApprovalAskParams) (result api.ApprovalResult, out service.Outcome, err error) {
	out.About = p.What
	run, found := c.Run, c.Run.Spec.ID == p.Run
	if a.Run != nil {
		run, found = a.Run(p.Run)
	}
	if !found || run.State == agent.StateEnded {
		return result, out, api.Failure(api.CodeNotFound, "", "no live run %.64q", string(p.Run))
	}
	out.Owner = &run.Owner.UID
	made, waits, err := a.made(c, run, p)
	if err != nil {
		return result, out, err
	}
	out.About = made.What
	r, err := a.enter(c, run, made, waits, &out)
	if err != nil {
		return result, out, err
	}
	a.due(&out, r)
	result.Approval = r.Approval
	return result, out, nil
}

// due has the end of a question looked at in time.
func (a *Approvals) due(out *service.Outcome, r *Row) {
	if a.Due != nil && r.State == api.ApprovalWaits {
		out.Durable = append(out.Durable, func() { a.Due(r.Expires) })
	}
}

// allowed refuses a network rule that a user may not give a run.
func (a *Approvals) allowed(rule string, owner agent.Owner) error {
	if a.CheckNet == nil {
		return nil
	}
	return a.CheckNet(agent.EgressRule{Target: rule, Source: "approval"}, owner)
}

func (a *Approvals) get(c *service.Call, p api.ApprovalGetParams) (result api.ApprovalResult, out service.Outcome, err error) {
	r, err := a.named(c, p.ID)
	switch {
	case err != nil:
		return result, out, err
	case p.Answered && r.ID != p.ID:
		return result, out, api.Failure(api.CodeParams, "", "write the whole id, %s", r.ID)
	case p.Answered && r.State == api.ApprovalWaits:
		return result, out, service.ErrNotYet
	}
	result.Approval = r.Approval
	return result, out, nil
}

// named is the question that a user means, by its id or the beginning of that.
func (a *Approvals) named(c *service.Call, id string) (*Row, error) {
	r, err := find(c.Tx, id)
	if err != nil || a.sees(c, r) {
		return r, err
	}
	waiting, err := Rows.Indexed(c.Tx, waitTerm, waitTerm)
	if err != nil {
		return nil, err
	}
	var found *Row
	for _, r := range waiting {
		if a.sees(c, r) && id != "" && strings.HasPrefix(r.ID, id) {
			if found != nil {
				return nil, api.Failure(api.CodeConflict, "write more of the id", "several questions begin with %.64q", id)
			}
			found = r
		}
	}
	if found == nil {
		return nil, noQuestion(id)
	}
	return found, nil
}

func (a *Approvals) list(c *service.Call, p api.ApprovalListParams) (result api.ApprovalListResult, out service.Outcome, err error) {
	below := ""
	id := agent.ID(p.Run)
	if id.Valid() {
		below = store.RunKey(id, "")
	}
	result.Approvals, result.Next, err = part(c.Tx, below, p.After, func(r *Row) bool {
		return a.sees(c, r) && (p.State == "" || r.State == p.State) && (p.Run == "" || id.Valid() || r.Agent == p.Run)
	})
	return result, out, err
}

func (a *Approvals) own(c *service.Call, p api.ApprovalOwnParams) (result api.ApprovalListResult, out service.Outcome, err error) {
	result.Approvals, result.Next, err = part(c.Tx, store.RunKey(c.Run.Spec.ID, ""), p.After, func(*Row) bool { return true })
	for i := range result.Approvals {
		result.Approvals[i].Shown = nil // paths of the host's, and what a manifest has, are for people
	}
	return result, out, err
}

// part is a part of the questions.
func part(tx *store.KernelTx, below, after string, is func(*Row) bool) (all []api.Approval, next string, err error) {
	all = []api.Approval{}
	for {
		var page []*Row
		page, after, err = Rows.Page(tx, below, after, inPart-len(all))
		for _, r := range page {
			if is(r) {
				all = append(all, r.Approval)
			}
		}
		if err != nil || after == "" || len(all) == inPart {
			return all, after, err
		}
	}
}

func (a *Approvals) respond(c *service.Call, p api.ApprovalRespondParams) (result api.ApprovalResult, out service.Outcome, err error) {
	out.About, out.Reason = p.ID, p.Reason
	r, err := find(c.Tx, p.ID)
	if err == nil && (r == nil || r.Run != c.Run.Spec.ID) {
		err = noQuestion(p.ID)
	}
	if err != nil {
		return result, out, err
	}
	out.About, out.Object = r.What, r.ID
	if err := checkAnswer(c, r, p); err != nil {
		return result, out, err
	}
	by := answerer(c, r, p)
	switch {
	case r.State != api.ApprovalWaits || !c.Now.Before(r.Expires):
		return result, out, api.Failure(api.CodeConflict, "clove approvals show "+r.ID, "the question %s is %s", r.ID, cmp.Or(over(r, c.Now), r.State))
	case p.Digest != r.Digest:
		return result, out, api.Failure(api.CodeConflict, "look at it again: clove approvals show "+r.ID, "the answer is for another question")
	case p.ForMS != 0 && p.Allow && kinds[r.Kind].calls:
		return result, out, api.Failure(api.CodeParams, "leave the time out", "what %s is asked for is done once", r.ID)
	case r.answeredBy(by.UID):
		return result, out, api.Failure(api.CodeConflict, "another user must answer too", "user %d has answered it", by.UID)
	case p.Allow:
		if err := kinds[r.Kind].may(a, r, by); err != nil {
			return result, out, err
		}
	}
	if !r.add(by.UID, p, c.Now) {
		result.Approval = r.Approval
		return result, out, Rows.Put(c.Tx, r)
	}
	if err := Rows.Put(c.Tx, r); err != nil { // before the yes: what that changes has other questions looked at
		return result, out, err
	}
	if yes := kinds[r.Kind].yes; p.Allow && yes != nil {
		done, err := yes(a, c, r)
		if err != nil {
			return result, out, err
		}
		out.Add(done)
	}
	a.concluded(&out, r)
	result.Approval = r.Approval
	return result, out, Rows.Put(c.Tx, r)
}

// over is the state of a question whose time is over.
func over(r *Row, now time.Time) api.ApprovalState {
	if r.State == api.ApprovalWaits && !now.Before(r.Expires) {
		return api.ApprovalExpired
	}
	return ""
}

func (a *Approvals) cancel(c *service.Call, p api.ApprovalCancelParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = p.ID
	r, err := Rows.Get(c.Tx, store.RunKey(c.Run.Spec.ID, p.ID))
	switch {
	case err != nil:
		return none, out, err
	case r == nil:
		return none, out, noQuestion(p.ID)
	case r.State != api.ApprovalWaits:
		return none, out, api.Failure(api.CodeConflict, "", "the question %s is %s", r.ID, r.State)
	}
	r.State, r.Withdrawn = api.ApprovalGone, true
	a.concluded(&out, r)
	return none, out, Rows.Put(c.Tx, r)
}

// Tick ends the questions whose time is over, and returns when the next one's is; zero: none waits.
func (a *Approvals) Tick(e *service.Engine) (next time.Time, err error) {
	due := false
	now := e.Now()
	err = e.Read(func(tx *store.KernelTx) error {
		all, err := Rows.Indexed(tx, waitTerm, waitTerm)
		for _, r := range all {
			if !now.Before(r.Expires) {
				due = true
			} else if next.IsZero() || r.Expires.Before(next) {
				next = r.Expires
			}
		}
		return err
	})
	if err != nil || !due {
		return next, err
	}
	var out service.Outcome
	return next, e.Within(agent.Run{}, "approval.expired", "", func(c *service.Call) (service.Outcome, error) {
		out = service.Outcome{Verdict: audit.VerdictDeny}
		all, err := Rows.Indexed(c.Tx, waitTerm, waitTerm)
		for _, r := range all {
			if now.Before(r.Expires) {
				continue
			}
			r.State = api.ApprovalExpired
			if r.Budget != nil && !now.Before(r.Budget.Until) && !r.Budget.Until.IsZero() { // its period is over: the run goes on
				r.State = api.ApprovalGone
			}
			a.concluded(&out, r)
			err = cmp.Or(err, Rows.Put(c.Tx, r), service.Record(c.Tx, c.Entry("approval."+string(r.State), r.What, audit.VerdictDeny)))
		}
		return out, err
	})
}
