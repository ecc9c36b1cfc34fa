package kernel

import (
	"cmp"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/approvals"
	"clove.run/clove/kernel/blob"
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
	err = k.engine.Read(func(tx *store.KernelTx) error {
		var jobErr error
		boxes, err := lease.Counted(tx)
		for uid, of := range boxes {
			if is(uid) {
				n.Mailboxes, n.Messages, n.DeadLetters = n.Mailboxes+of.Boxes, n.Messages+of.Messages, n.DeadLetters+of.Dead
			}
		}
		asks, askErr := approvals.Counted(tx)
		for uid, waiting := range asks {
			if is(uid) {
				n.Approvals += waiting
			}
		}
		err = cmp.Or(err, askErr,
			jobs.Queues.Each(tx, func(q *jobs.Queue) {
				if !is(q.Owner) {
					return
				}
				n.Queues++
				in, cerr := jobs.Counted(tx, q)
				n.Jobs, jobErr = n.Jobs.Plus(in), cmp.Or(jobErr, cerr)
			}),
			names.Rows.Each(tx, func(r *names.Row) {
				if is(r.Owner) {
					n.Names++
				}
			}),
			blob.Rows.Each(tx, func(r *blob.Row) {
				if is(r.Owner) {
					n.Blobs++
				}
			}),
			blob.Owners.Each(tx, func(u *blob.Used) {
				if is(u.Owner) {
					n.BlobBytes += u.Bytes
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
		return cmp.Or(err, jobErr)
	})
	return n, err
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

// Asking says what a run asks people and waits for; empty: nothing.
func (k *Kernel) Asking(run agent.ID) (text string, err error) {
	err = k.engine.Read(func(tx *store.KernelTx) error {
		all, err := approvals.Waiting(tx, run)
		if len(all) == 0 {
			return err
		}
		first := all[len(all)-1] // about a budget, if one is: that has the whole run wait
		text = fmt.Sprintf("people are asked to let it %s (clove approvals show %s)", first.What, first.ID)
		if len(all) > 1 {
			text += fmt.Sprintf(", and %d more questions", len(all)-1)
		}
		return err
	})
	return text, err
}
