package approvals

import (
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// sees reports whether a user may see and answer a question.
func (a *Approvals) sees(c *service.Call, r *Row) bool {
	return r != nil && (c.Root() || r.Owner == c.UID || a.approver(c.UID))
}

// approver reports whether a user may answer questions of all runs.
func (a *Approvals) approver(uid uint32) bool {
	return a.Approvers != nil && slices.Contains(a.Approvers(), uid)
}

// Answerable refuses the start of a run whose questions need the yes of more users than may answer them.
func (a *Approvals) Answerable(run agent.Run) error {
	users := []uint32{0, run.Owner.UID}
	if a.Approvers != nil {
		users = append(users, a.Approvers()...)
	}
	slices.Sort(users)
	users = slices.Compact(users)
	for _, kind := range agent.Asks {
		if people := run.Spec.Kernel.People(kind); people > len(users) {
			return api.Failure(api.CodeDenied, "name more users under approvers in clove.yaml, or ask fewer people",
				"--ask %s=%d: so many users have to say yes, and %d may answer", kind, people, len(users))
		}
	}
	return nil
}

// checkAnswer refuses an answer that says more than one thing.
func checkAnswer(c *service.Call, r *Row, p api.ApprovalRespondParams) error {
	holds := time.Duration(p.ForMS) * time.Millisecond
	switch {
	case len(p.Reason) > reasonMost:
		return api.Failure(api.CodeParams, "", "a reason has at most %d bytes", reasonMost)
	case p.ForMS < 0 || holds > lastsMost*52:
		return api.Failure(api.CodeParams, "give a time of at most a year", "an answer cannot hold for %d ms", p.ForMS)
	case p.Once && (!p.Allow || p.ForMS != 0):
		return api.Failure(api.CodeParams, "say one of both, with a yes", "an answer for one time holds for no other time, and is a yes")
	case (p.Command || p.Fault != "") && !c.Root():
		return api.Failure(api.CodeDenied, "", "the run's supervisor alone brings the answer of a command")
	case p.Command && p.Fault != "":
		return api.Failure(api.CodeDenied, "people answer now: clove approvals allow "+r.ID, "the answer of --on-ask is refused: %.256s", p.Fault)
	}
	return nil
}

// answerer is the user whose answer a call brings. That of a command is its owner's.
func answerer(c *service.Call, r *Row, p api.ApprovalRespondParams) agent.Owner {
	if p.Command {
		return c.Run.Owner
	}
	return agent.Owner{UID: c.UID, GID: c.Run.Owner.GID}
}

// answeredBy reports whether a user has answered a question.
func (r *Row) answeredBy(uid uint32) bool {
	return slices.ContainsFunc(r.Answers, func(a api.ApprovalAnswer) bool { return a.UID == uid })
}

// add adds an answer to a question, and reports whether it decides: one no does, and so do as many yeses as the question
// needs. Of several yeses the narrowest one counts.
func (r *Row) add(uid uint32, p api.ApprovalRespondParams, now time.Time) (decides bool) {
	r.Answers = append(r.Answers, api.ApprovalAnswer{UID: uid, Allow: p.Allow, Time: now.UTC(), Reason: p.Reason, Once: p.Once, ForMS: p.ForMS, Command: p.Command})
	if !p.Allow {
		r.State = api.ApprovalDenied
		if p.ForMS != 0 {
			r.Until = now.Add(time.Duration(p.ForMS) * time.Millisecond).UTC()
		}
		return true
	}
	if len(r.Answers) < r.Needed {
		return false
	}
	r.State = api.ApprovalAllowed
	for _, a := range r.Answers {
		r.Once = r.Once || a.Once
		if until := now.Add(time.Duration(a.ForMS) * time.Millisecond).UTC(); a.ForMS != 0 && (r.Until.IsZero() || until.Before(r.Until)) {
			r.Until = until
		}
	}
	return true
}

// use uses up a yes for one time. It is durable before the supervisor does what was allowed: a yes is used once or not at
// all.
func (a *Approvals) use(c *service.Call, p api.ApprovalUseParams) (result api.ApprovalResult, out service.Outcome, err error) {
	out.About = p.ID
	r, err := Rows.Get(c.Tx, store.RunKey(p.Run, p.ID))
	switch {
	case err != nil:
		return result, out, err
	case r == nil:
		return result, out, noQuestion(p.ID)
	}
	out.About, out.Object, out.Owner = r.What, r.ID, &r.Owner
	if r.State != api.ApprovalAllowed || !r.Once || !r.holds(c.Now) {
		return result, out, api.Failure(api.CodeConflict, "ask again", "the question %s has no yes that is left", r.ID)
	}
	r.Used = c.Now.UTC()
	result.Approval = r.Approval
	return result, out, Rows.Put(c.Tx, r)
}
