package approvals

import (
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
)

// kind is what people are asked about.
type kind struct {
	// calls says that it is a call of an agent's, which the engine keeps: what people allow is done once.
	calls bool
	// stands says that the kernel asks: the run's supervisor shows it where it shows its own.
	stands bool
	// shown is how many bytes people see of a call at most; 0: whatMost.
	shown int
	// ask makes the question of a supervisor about a run; nil: the supervisor's words are the question.
	ask func(a *Approvals, c *service.Call, run agent.Run, p api.ApprovalAskParams) (Row, error)
	// lasts is how long a question waits, unless it says something else; 0: lasts.
	lasts time.Duration
	// may refuses a question whose yes a user may not give.
	may func(a *Approvals, r *Row, user agent.Owner) error
	// yes does what a yes allows, in the transaction of the answer; nil: the row itself is what is looked at.
	yes func(a *Approvals, c *service.Call, r *Row) (service.Outcome, error)
}

// kinds are all of them. Another one is a row here, in agent.Asks and in docs/approvals.md.
var kinds = map[api.ApprovalKind]kind{
	api.ApproveNet: {
		may: func(a *Approvals, r *Row, user agent.Owner) error { return a.allowed(r.Rule, user) },
		yes: func(a *Approvals, c *service.Call, r *Row) (out service.Outcome, err error) {
			if r.Once {
				return out, nil
			}
			r.Grant, out, err = a.Grants.Give(c, "net:"+r.Rule, "approval "+r.ID, r.Until)
			return out, err
		},
	},
	api.ApproveSpawn:  {calls: true, may: ownerOrRoot},
	api.ApproveApply:  {calls: true, may: ownerOrRoot, shown: changesMost},
	api.ApproveSecret: {ask: (*Approvals).askSecret, may: func(*Approvals, *Row, agent.Owner) error { return nil }}, // as the run itself
	api.ApproveTool:   {stands: true, may: ownerOrRoot},
	api.ApproveBudget: {
		ask: (*Approvals).askBudget, lasts: budgetLasts,
		may: func(*Approvals, *Row, agent.Owner) error { return nil }, // Add refuses
		yes: func(a *Approvals, c *service.Call, r *Row) (service.Outcome, error) {
			return a.Budgets.Add(c, *r.Budget)
		},
	},
}
