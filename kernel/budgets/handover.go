package budgets

import (
	"cmp"
	"errors"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Reserved returns the amounts of a reservation that an agent has made and not settled.
func (b *Budgets) Reserved(tx *store.KernelTx, run agent.ID, id string) (map[string]int64, error) {
	r, err := store.Reservations.Get(tx, store.RunKey(run, id))
	if err == nil && (r == nil || r.Service != serviceAgent) {
		err = api.Failure(api.CodeNotFound, "each is settled, released or handed over once", "no reservation %.64q", id)
	}
	if err != nil {
		return nil, err
	}
	all := map[string]int64{}
	for d, amount := range r.Amounts {
		all[string(d)] = amount
	}
	return all, nil
}

// HandOver moves a reservation of an agent's to another run, which reserves the same amounts in its
// own accounts and settles them. In accounts of the giver's that the other run does not spend from
// they count as used. It returns the new reservation's id.
func (b *Budgets) HandOver(c *service.Call, from agent.ID, to agent.Run, id string) (handed string, out service.Outcome, err error) {
	if _, err := b.Reserved(c.Tx, from, id); err != nil {
		return "", out, err
	}
	old, err := store.Reservations.Get(c.Tx, store.RunKey(from, id))
	if err != nil {
		return "", out, err
	}
	if err := b.leave(c, *old, keysOf(to), &out); err != nil {
		return "", out, err
	}
	r := budget.Reservation{ID: string(agent.NewID()), Run: to.Spec.ID, Service: serviceAgent, Amounts: old.Amounts}
	chain, err := chainOf(c.Tx, to)
	if err != nil {
		return "", out, err
	}
	if len(chain) == 0 || chain[0].Key != budget.RunKey(to.Owner.UID, to.Spec.ID) {
		return "", out, api.Failure(api.CodeConflict, "start it with --agent-socket or a budget", "%s has no account to reserve in", to.Spec.Name)
	}
	err = chain.Reserve(&r, c.Now)
	var over *budget.Exceeded
	if errors.As(err, &over) {
		return "", out, refusal(over, "less can be handed over, or the other run gets more")
	}
	return r.ID, out, cmp.Or(err, store.Reservations.Put(c.Tx, &r), store.Accounts.PutChain(c.Tx, chain))
}

// leave ends a reservation that another run with these accounts takes over.
func (b *Budgets) leave(c *service.Call, old budget.Reservation, keys []budget.Key, out *service.Outcome) error {
	chain, err := store.Accounts.Chain(c.Tx, old.Accounts()...)
	if err == nil {
		err = chain.Release(old)
	}
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(chain), func(a *budget.Account) bool { return slices.Contains(keys, a.Key) })
	if len(own) > 0 {
		effects, err := own.Charge(old.Amounts, c.Now)
		if err != nil {
			return err
		}
		for _, n := range effects.Warned {
			out.Notify(old.Run, noticeOf(api.NoteBudgetWarning, n))
		}
		out.Add(service.Outcome{Below: below(ended(effects)...)})
	}
	out.Changed = append(out.Changed, old.Run)
	return cmp.Or(store.Accounts.PutChain(c.Tx, chain), store.Reservations.Delete(c.Tx, store.RunKey(old.Run, old.ID)))
}
