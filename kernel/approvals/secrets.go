package approvals

import (
	"cmp"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// secretRow is the question about a use of a secret.
func secretRow(secret, what string) Row {
	return Row{Approval: api.Approval{Kind: api.ApproveSecret, What: what, Rule: "secret:" + secret}}
}

// askSecret makes the question about a use of a secret.
func (a *Approvals) askSecret(c *service.Call, run agent.Run, p api.ApprovalAskParams) (made Row, err error) {
	if p.Secret == nil || run.Spec.Kernel.People(agent.AskSecret) == 0 {
		return made, api.Failure(api.CodeParams, "", "it is no question to people")
	}
	what, err := a.Secret(c, run, *p.Secret)
	return secretRow(p.Secret.Secret, what), err
}

// UseSecret uses what people have answered to the question about a use of a secret. A yes for one time is used up with it. The
// error is a conflict where they were not asked, or have not answered.
func (a *Approvals) UseSecret(c *service.Call, run agent.Run, secret, what string) error {
	made := secretRow(secret, what)
	return made.answered(c, run)
}

// answered uses what people have answered to an equal question of a run.
func (made *Row) answered(c *service.Call, run agent.Run) error {
	all, err := Rows.Below(c.Tx, store.RunKey(run.Spec.ID, ""))
	for _, r := range all {
		switch {
		case !r.same(made) || !r.holds(c.Now) || r.State == api.ApprovalWaits:
		case r.State != api.ApprovalAllowed:
			return api.Failure(api.CodeDenied, "", "people refused it: %s", r.why()).By(service.StageApproval, r.ID)
		default:
			if r.Once {
				r.Used = c.Now.UTC()
				err = cmp.Or(err, Rows.Put(c.Tx, r))
			}
			return err
		}
	}
	return cmp.Or(err, error(api.Failure(api.CodeConflict, "", "people have not answered").By(service.StageApproval, "")))
}
