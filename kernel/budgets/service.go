package budgets

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Budgets is the service. The zero value is ready.
type Budgets struct {
	// More is called in the transaction that has changed a limit or set back what was used; nil: nothing is.
	More  func(c *service.Call, account, dimension string, out *service.Outcome) error
	rates rates
}

// more has the questions about an account's budgets looked at.
func (b *Budgets) more(c *service.Call, a *budget.Account, out *service.Outcome) error {
	for _, d := range slices.Sorted(maps.Keys(a.Lines)) {
		if b.More == nil {
			break
		}
		if err := b.More(c, string(a.Key), string(d), out); err != nil {
			return err
		}
	}
	return nil
}

// Service returns its methods.
func (b *Budgets) Service() *service.Service {
	return service.New("budget").On(
		service.Read(agents.BudgetGet, service.Stages[api.RunParams]{}, get),
		service.Write(agents.BudgetReserve, service.Stages[api.BudgetReserveParams]{}, reserve),
		service.Write(agents.BudgetSettle, service.Stages[api.BudgetSettleParams]{}, b.settle),
		service.Write(agents.BudgetRelease, service.Stages[api.BudgetReleaseParams]{}, b.release),
		service.Write(agents.BudgetCharge, service.Stages[api.BudgetChargeParams]{}, b.charge),
		service.Write(methods.BudgetRaise, service.Stages[api.BudgetRaiseParams]{}, b.raise),
		service.Write(methods.BudgetReset, service.Stages[api.BudgetResetParams]{}, b.reset),
		service.Write(methods.BudgetSet, service.Stages[api.BudgetSetParams]{About: api.BudgetSetParams.AuditText}, b.set),
		service.Read(methods.BudgetList, service.Stages[api.BudgetListParams]{}, list),
		service.Read(methods.BudgetReport, service.Stages[api.BudgetReportParams]{}, report),
		service.Read(methods.BudgetTop, service.Stages[api.BudgetTopParams]{}, b.top),
	)
}

// serviceAgent is the service of a reservation by the agent itself, and no part of clove's.
const serviceAgent = "agent"

func get(c *service.Call, _ api.RunParams) (api.BudgetResult, service.Outcome, error) {
	return lines(c, service.Outcome{})
}

// lines is the answer of the methods about the budgets of a run.
func lines(c *service.Call, out service.Outcome) (api.BudgetResult, service.Outcome, error) {
	chain, err := chainOf(c.Tx, c.Run)
	if err != nil {
		return api.BudgetResult{}, out, err
	}
	return linesAt(chain, c.Now), out, nil
}

// amounts reads what a caller named. Callers may not name dimensions that clove meters.
func amounts(given map[string]int64, out *service.Outcome) (budget.Amounts, error) {
	if len(given) == 0 {
		return nil, api.Failure(api.CodeParams, `say for example "amounts":{"reviews":1}`, "no amount is named")
	}
	amounts := budget.Amounts{}
	for name, amount := range given {
		d := budget.Dimension(name)
		if d.Counted() {
			out.About = budget.Amounts{d: amount}.Text()
			return nil, api.Failure(api.CodeDenied, "clove counts it; use a dimension of your own", "%.32s cannot be charged from outside of clove", name).By(service.StageBudget, api.RuleCounted+name)
		}
		amounts[d] = amount
	}
	if err := amounts.Validate(); err != nil {
		return nil, err
	}
	out.About = amounts.Text()
	return amounts, nil
}

func reserve(c *service.Call, p api.BudgetReserveParams) (result api.BudgetReserveResult, out service.Outcome, err error) {
	wanted, err := amounts(p.Amounts, &out)
	if err != nil {
		return result, out, err
	}
	r := budget.Reservation{ID: string(agent.NewID()), Run: c.Run.Spec.ID, Service: serviceAgent, Amounts: wanted}
	chain, err := chainOf(c.Tx, c.Run)
	if err == nil {
		err = enter(c, chain, &r, &out)
	}
	return api.BudgetReserveResult{Reservation: r.ID}, out, err
}

// enter reserves in a chain, and stores both.
func enter(c *service.Call, chain budget.Chain, r *budget.Reservation, out *service.Outcome) error {
	if err := chain.Reserve(r, c.Now); err != nil {
		return exceeded(c, chain, err, out)
	}
	return cmp.Or(store.Reservations.Put(c.Tx, r), store.Accounts.PutChain(c.Tx, chain))
}

// open returns a reservation that the agent may settle, with the accounts that hold it.
func open(c *service.Call, id string) (budget.Reservation, budget.Chain, error) {
	r, err := store.Reservations.Get(c.Tx, store.RunKey(c.Run.Spec.ID, id))
	if err != nil {
		return budget.Reservation{}, nil, err
	}
	if r == nil || r.Service != serviceAgent {
		return budget.Reservation{}, nil, api.Failure(api.CodeNotFound, "each is settled or released once", "no reservation %.64q", id)
	}
	chain, err := store.Accounts.Chain(c.Tx, r.Accounts()...)
	return *r, chain, err
}

func (b *Budgets) settle(c *service.Call, p api.BudgetSettleParams) (result api.BudgetResult, out service.Outcome, err error) {
	used, err := amounts(p.Amounts, &out)
	if err != nil {
		return result, out, err
	}
	r, chain, err := open(c, p.Reservation)
	if err != nil {
		return result, out, err
	}
	effects, err := chain.Claim(r, used, c.Now)
	if err != nil {
		return result, out, exceeded(c, chain, err, &out)
	}
	return b.end(c, r, chain, effects, out)
}

func (b *Budgets) release(c *service.Call, p api.BudgetReleaseParams) (result api.BudgetResult, out service.Outcome, err error) {
	r, chain, err := open(c, p.Reservation)
	if err == nil {
		err = chain.Release(r)
	}
	if err != nil {
		return result, out, err
	}
	return b.end(c, r, chain, budget.Effects{}, out)
}

// end stores a chain whose reservation has ended.
func (b *Budgets) end(c *service.Call, r budget.Reservation, chain budget.Chain, effects budget.Effects, out service.Outcome) (api.BudgetResult, service.Outcome, error) {
	err := cmp.Or(b.Spent(c, chain, &out, effects), store.Reservations.Delete(c.Tx, store.RunKey(r.Run, r.ID)))
	return linesAt(chain, c.Now), out, err
}

func (b *Budgets) charge(c *service.Call, p api.BudgetChargeParams) (result api.BudgetResult, out service.Outcome, err error) {
	used, err := amounts(p.Amounts, &out)
	if err != nil {
		return result, out, err
	}
	chain, err := chainOf(c.Tx, c.Run)
	if err != nil {
		return result, out, err
	}
	effects, err := chain.Claim(budget.Reservation{}, used, c.Now)
	if err != nil {
		return result, out, exceeded(c, chain, err, &out)
	}
	err = b.Spent(c, chain, &out, effects)
	return linesAt(chain, c.Now), out, err
}

// Reserve sets aside what a call may cost, below the call's id.
func (b *Budgets) Reserve(c *service.Call, costs budget.Amounts) (out service.Outcome, err error) {
	chain, err := chainOf(c.Tx, c.Run)
	if err != nil {
		return out, err
	}
	r := budget.Reservation{ID: c.ID, Run: c.Run.Spec.ID, Service: serviceCall, Amounts: costs}
	return out, enter(c, chain, &r, &out)
}

// serviceCall names a call that costs something as the one that reserves.
const serviceCall = "call"

// Settle pays what a call cost of what was reserved for it.
func (b *Budgets) Settle(c *service.Call, used budget.Amounts) (out service.Outcome, err error) {
	r, err := store.Reservations.Get(c.Tx, store.RunKey(c.Run.Spec.ID, c.ID))
	if err != nil || r == nil { // the run has ended: it was settled
		return out, err
	}
	chain, err := store.Accounts.Chain(c.Tx, r.Accounts()...)
	if err != nil {
		return out, err
	}
	effects, err := chain.Settle(*r, used, c.Now)
	if err != nil {
		return out, err
	}
	_, out, err = b.end(c, *r, chain, effects, out)
	return out, err
}

// LastMinute returns what a run spent in the last minute, since the process began if that is
// later, without what is zero.
func (b *Budgets) LastMinute(run agent.ID, now time.Time) budget.Amounts {
	return b.rates.spent(run, now)
}

// Forget drops what a run that has ended spent in the last minute.
func (b *Budgets) Forget(run agent.ID) { b.rates.forget(run) }
