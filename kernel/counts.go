package kernel

import (
	"cmp"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/jobs"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/names"
	"clove.run/clove/store"
)

// Counts counts what there is of a user; nil: of all. owns reports whether a run is the user's.
func (k *Kernel) Counts(owner *uint32, owns func(agent.ID) bool) (n api.Counts, err error) {
	is := func(uid uint32) bool { return owner == nil || uid == *owner }
	rerr := k.engine.Read(func(tx *store.KernelTx) error {
		return cmp.Or(
			lease.Boxes.Each(tx, func(b *lease.Box) {
				switch {
				case !is(b.Owner):
				case b.Kind == lease.OfQueue:
					ready, delayed, jerr := lease.Open(tx, b)
					n.Jobs = n.Jobs.Plus(api.JobCounts{Ready: ready, Delayed: delayed, Held: b.Held, Dead: b.Dead, Done: b.Done})
					err = cmp.Or(err, jerr)
				default:
					n.Mailboxes, n.Messages, n.DeadLetters = n.Mailboxes+1, n.Messages+b.Messages, n.DeadLetters+b.Dead
				}
			}),
			jobs.Queues.Each(tx, func(q *jobs.Queue) {
				if is(q.Owner) {
					n.Queues++
				}
			}),
			names.Rows.Each(tx, func(r *names.Row) {
				if is(r.Owner) {
					n.Names++
				}
			}),
			store.Grants.Each(tx, func(g *grant.Grant) {
				if owner == nil || owns(agent.ID(g.Holder)) {
					n.Grants++
				}
			}),
			store.Accounts.Each(tx, func(a *budget.Account) {
				if uid, of := a.Key.Owner(); of && is(uid) {
					n.Budgets++
					n.Spent += spent(a)
				}
			}))
	})
	return n, cmp.Or(rerr, err)
}

// spent is 1 for an account with a limit of which nothing is left.
func spent(a *budget.Account) int {
	for _, l := range a.Lines {
		if !l.Unlimited && l.Used >= l.Granted {
			return 1
		}
	}
	return 0
}
