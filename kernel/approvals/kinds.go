package approvals

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
)

// kind is what people are asked about.
type kind struct {
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
}
