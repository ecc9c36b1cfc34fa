package approvals

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Budgets are what people are asked about where a run is paused for one, and what a yes changes.
type Budgets interface {
	// Pausing returns the budget that has a run pause, what people are asked about it, and what clove budget raise would
	// be given for the same; nil: none has.
	Pausing(c *service.Call, run agent.Run) (asked *api.ApprovalBudget, what, rule string, err error)
	// Still reports whether a budget has not got more since people were asked.
	Still(tx *store.KernelTx, asked api.ApprovalBudget, now time.Time) (bool, error)
	// Add gives more of a budget, or refuses a user who may not.
	Add(c *service.Call, asked api.ApprovalBudget) (service.Outcome, error)
}

// budgetLasts is how long a question about a budget waits: the run stands still meanwhile.
const budgetLasts = 24 * time.Hour

// budgetTerm is the term of the index byBudget: names of accounts are longer than a term may be.
func budgetTerm(account, dimension string) string {
	sum := sha256.Sum256([]byte(account + " " + dimension))
	return hex.EncodeToString(sum[:16])
}

// askBudget makes the question about the budget that has a run pause.
func (a *Approvals) askBudget(c *service.Call, run agent.Run, _ api.ApprovalAskParams) (made Row, err error) {
	asked, what, rule, err := a.Budgets.Pausing(c, run)
	if err != nil {
		return made, err
	}
	if asked == nil {
		return made, api.Failure(api.CodeConflict, "", "no budget has %s pause", run.Spec.Name)
	}
	made.Approval = api.Approval{Kind: api.ApproveBudget, Budget: asked, What: what, Rule: rule}
	return made, nil
}

// equalBudget finds the question about the same budget, of whichever run, that waits or whose answer holds: until the budget
// has more.
func (a *Approvals) equalBudget(c *service.Call, made *Row) (*Row, error) {
	all, err := Rows.Indexed(c.Tx, byBudget, budgetTerm(made.Budget.Account, made.Budget.Dimension))
	for _, r := range all {
		if still, serr := a.Budgets.Still(c.Tx, *r.Budget, c.Now); serr != nil || still {
			return r, serr
		}
	}
	return nil, err
}

// More ends the questions about a budget that has more now, and lets the answers hold no longer.
func (a *Approvals) More(c *service.Call, account, dimension string, out *service.Outcome) error {
	all, err := Rows.Indexed(c.Tx, byBudget, budgetTerm(account, dimension))
	if err != nil {
		return err
	}
	for _, r := range all {
		still, err := a.Budgets.Still(c.Tx, *r.Budget, c.Now)
		if err != nil {
			return err
		}
		if still {
			continue
		}
		if r.State == api.ApprovalWaits {
			r.State = api.ApprovalGone
			a.concluded(out, r)
		}
		r.Over = true
		if err := Rows.Put(c.Tx, r); err != nil {
			return err
		}
	}
	return nil
}
