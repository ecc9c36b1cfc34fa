package budgets

import (
	"cmp"
	"errors"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// serviceSpawn is the service of a reservation that counts a live child, below the child's id.
const serviceSpawn = "spawn"

// childrenUnlessSaid is how many live descendants a run may have at once, unless a budget says it.
const childrenUnlessSaid = 16

// setChildren gives the account of a run that may start others a limit of children, where it has none.
func setChildren(a *budget.Account, run agent.Run, now time.Time) error {
	if !run.Spec.Kernel.HasChildren() || a.Lines[budget.Children] != nil {
		return nil
	}
	_, err := a.Set(budget.Limit{Dimension: budget.Children, Granted: childrenUnlessSaid}, run.Owner.UID, now)
	return err
}

// ReserveChild counts a child that the call's run starts among the live descendants of that run and
// of those above it. Where one of them has as many as it may, the error is a refusal, and nothing
// happens to the run, whatever its at_end says.
func (b *Budgets) ReserveChild(c *service.Call, child agent.ID) (out service.Outcome, err error) {
	chain, err := chainOf(c.Tx, c.Run)
	if err != nil {
		return out, err
	}
	if len(chain) == 0 || chain[0].Lines[budget.Children] == nil {
		return out, api.Failure(api.CodeDenied, "start it with --grant spawn:NAME", "%s may start no agents", c.Run.Spec.Name).By(service.StageBudget, api.RuleManifest)
	}
	r := budget.Reservation{ID: string(child), Run: c.Run.Spec.ID, Service: serviceSpawn, Amounts: budget.Amounts{budget.Children: 1}}
	err = chain.Reserve(&r, c.Now)
	var over *budget.Exceeded
	if errors.As(err, &over) {
		return out, refusal(over, "a child that ends makes room; clove budget raise or set gives more")
	}
	return out, cmp.Or(err, store.Reservations.Put(c.Tx, &r), store.Accounts.PutChain(c.Tx, chain))
}

// Children is how many live descendants a run may have; 0: it may start none.
func (b *Budgets) Children(tx *store.KernelTx, run agent.Run) (int64, error) {
	chain, err := chainOf(tx, run)
	if err != nil || len(chain) == 0 || chain[0].Lines[budget.Children] == nil {
		return 0, err
	}
	return chain[0].Lines[budget.Children].Granted, nil
}

// ReleaseChild counts a child of a run's no more: it has ended. One that is not counted is no error.
func (b *Budgets) ReleaseChild(tx *store.KernelTx, parent agent.Run, child agent.ID, now time.Time) (out service.Outcome, err error) {
	r, err := store.Reservations.Get(tx, store.RunKey(parent.Spec.ID, string(child)))
	if err != nil || r == nil || !OfChild(*r) {
		return out, err
	}
	_, _, err = settleGone(tx, *r, now)
	return out, err
}

// OfChild reports whether a reservation counts a live child of its run's. Its ID is the child's.
func OfChild(r budget.Reservation) bool { return r.Service == serviceSpawn }
