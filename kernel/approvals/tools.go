package approvals

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// toolRow is the question about a call of a tool. People see the tool, how it runs and all of its arguments; a yes is for exactly these.
func toolRow(what string, shown []string) Row {
	return Row{Approval: api.Approval{Kind: api.ApproveTool, What: what, Shown: shown}}
}

// UseTool uses what people have answered to the question about a call of a tool, as UseSecret does. A question of which people would
// not see all is refused.
func (a *Approvals) UseTool(c *service.Call, run agent.Run, what string, shown []string) error {
	made := toolRow(what, shown)
	if err := made.seen(); err != nil {
		return err
	}
	return made.answered(c, run)
}

// AskTool asks people about a call of a tool, and returns the question's id.
func (a *Approvals) AskTool(c *service.Call, run agent.Run, what string, shown []string) (id string, out service.Outcome, err error) {
	out.About = what
	r, err := a.enter(c, run, toolRow(what, shown), lasts, &out)
	if err != nil {
		return "", out, err
	}
	a.due(&out, r)
	out.Object, out.Changed = r.ID, append(out.Changed, r.Run)
	return r.ID, out, nil
}

// Withdraw takes a question back, if it waits still.
func (a *Approvals) Withdraw(c *service.Call, run agent.Run, id string) (out service.Outcome, err error) {
	r, err := Rows.Get(c.Tx, store.RunKey(run.Spec.ID, id))
	if err != nil || r == nil || r.State != api.ApprovalWaits {
		return out, err
	}
	r.State, r.Withdrawn = api.ApprovalGone, true
	out.About, out.Object = r.What, r.ID
	a.concluded(&out, r)
	return out, Rows.Put(c.Tx, r)
}
