package approvals

import (
	"cmp"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Ask keeps the question about an agent's call. One that was refused before is not asked again.
func (a *Approvals) Ask(c *service.Call, q service.Asking) (out service.Outcome, err error) {
	made := Row{Call: c.Question().ID, Approval: api.Approval{Kind: api.ApprovalKind(q.Kind), What: q.What, Shown: q.Shown, Says: q.Says, Cost: q.Cost, Also: q.Also, Rule: q.Rule, Changes: q.Changes}}
	switch {
	case !kinds[made.Kind].calls:
		return out, api.Failure(api.CodeUnenforceable, "", "nothing asks people about %s", c.Method)
	case len(q.Says) > reasonMost:
		return out, api.Failure(api.CodeParams, "", "an agent's own words have at most %d bytes", reasonMost)
	}
	if err := made.seen(); err != nil {
		return out, err
	}
	before, err := Rows.Indexed(c.Tx, byCall, made.Call)
	for _, old := range before { // of a life of the run that has ended
		old.Call = ""
		err = cmp.Or(err, Rows.Put(c.Tx, old))
	}
	if err != nil {
		return out, err
	}
	r, err := a.enter(c, c.Run, made, lasts, &out)
	if err != nil {
		return out, err
	}
	if r.Call != made.Call || r.State != api.ApprovalWaits {
		return out, api.Failure(api.CodeDenied, "", "people refused the same before: %s", r.why())
	}
	out.Object, out.Changed = r.ID, append(out.Changed, r.Run)
	a.due(&out, r)
	return out, nil
}

// seen refuses a question of which people would not see all.
func (r *Row) seen() error {
	size, most := len(r.What)+len(strings.Join(r.Shown, ""))+len(r.Cost)+len(r.Also)+len(r.Rule), cmp.Or(kinds[r.Kind].shown, whatMost)
	if size > most {
		return api.Failure(api.CodeParams, "ask about less at once, as with fewer arguments or paths", "people see all of it, and it has %d bytes instead of %d", size, most)
	}
	return nil
}

// Standing adds the questions about calls that wait, and those that the kernel itself has asked: the run's supervisor shows them where it shows its own.
func Standing(tx *store.KernelTx, run agent.Run, s *api.Standing) error {
	if len(run.Spec.Kernel.Asks) == 0 {
		return nil
	}
	all, err := Waiting(tx, run.Spec.ID)
	for _, r := range all {
		if r.Call != "" || kinds[r.Kind].stands {
			s.Asking = append(s.Asking, r.ID)
		}
	}
	return err
}

// Decided returns what people answered to the question about a call.
func (a *Approvals) Decided(c *service.Call) (answer service.Approval, why string, err error) {
	all, err := Rows.Indexed(c.Tx, byCall, c.Question().ID)
	if err != nil {
		return service.Undecided, "", err
	}
	if len(all) == 0 {
		return service.Denied, "the question is gone", nil
	}
	switch r := all[0]; r.State {
	case api.ApprovalWaits:
		return service.Undecided, "", nil
	case api.ApprovalAllowed:
		return service.Approved, "", nil
	default:
		return service.Denied, r.why(), nil
	}
}

// why says why a question has no yes.
func (r *Row) why() string {
	switch r.State {
	case api.ApprovalExpired:
		return "there was no answer until " + r.Expires.Format(time.RFC3339)
	case api.ApprovalGone:
		return "the question was taken back"
	}
	for _, answer := range r.Answers {
		if !answer.Allow && answer.Reason != "" {
			return answer.Reason
		}
	}
	return "no reason was given"
}

// ownerOrRoot refuses a user who may not decide for the run. What a call does needs the rights of the run's owner
// besides, when it is done.
func ownerOrRoot(a *Approvals, r *Row, user agent.Owner) error {
	if user.UID == r.Owner || user.UID == 0 || a.approver(user.UID) {
		return nil
	}
	return api.Failure(api.CodeDenied, "its owner or root answers", "user %d may not answer for %s", user.UID, r.Agent)
}
