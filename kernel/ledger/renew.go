package ledger

import (
	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
	"cmp"
)

// Renewal is what a service does next for an agent, with a reservation that it has.
type Renewal struct {
	Service, Reservation string
	Used                 budget.Amounts // so far
	Ceiling              *Ceiling       // of what comes next
	// Fit chooses what is reserved for that, of what is left behind the payment, as Spending's
	// does.
	Fit func(budget.Left) (budget.Amounts, error)
}

// Renew pays what was used of a reservation, from the accounts that hold it, and reserves under
// its name what comes next. It is the same use of a grant. Where that does not fit, the error is
// n.Fit's or a *budget.Exceeded; then nothing is paid, the reservation stays as it was, and
// nothing happens to the run.
func (l *Ledger) Renew(run agent.Run, n Renewal) error {
	err := l.renew(run, n)
	if err != nil { // spares may be in the way
		if any, endErr := l.endSpares(ofOwner(run.Owner.UID)); any && endErr == nil {
			err = l.renew(run, n)
		}
	}
	return err
}

func (l *Ledger) renew(run agent.Run, n Renewal) error {
	entry, inSpare := l.spares.settled(n.Reservation)
	err := l.engine.Within(run, "renew", n.Reservation, func(c *service.Call) (out service.Outcome, err error) {
		r, err := reserved(c, n.Service, n.Reservation)
		if err != nil {
			return out, err
		}
		if inSpare {
			err = service.Record(c.Tx, entry)
		}
		return out, cmp.Or(err, l.settle(c, *r, Settlement{Service: n.Service, Used: n.Used}, &out), l.reserveNext(c, *r, n))
	})
	if err != nil && inSpare {
		l.spares.unsettled(n.Reservation, entry)
	}
	return err
}

// reserveNext reserves anew what was settled.
func (l *Ledger) reserveNext(c *service.Call, old budget.Reservation, n Renewal) error {
	chain, err := l.under(c.Tx, c.Run, n.Ceiling, c.Now)
	if err != nil {
		return err
	}
	r := budget.Reservation{ID: old.ID, Run: old.Run, Service: old.Service, Begun: true}
	if r.Amounts, err = n.Fit(chain.Left(c.Now)); err != nil {
		return err
	}
	if err := chain.Reserve(&r, c.Now); err != nil {
		return err
	}
	return cmp.Or(store.Reservations.Put(c.Tx, &r), store.Accounts.PutChain(c.Tx, chain), service.Record(c.Tx, entryOf(c, r, n.Service+".renew", r.Amounts)))
}
