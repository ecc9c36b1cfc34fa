package kernel

import (
	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
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
func (k *Kernel) Renew(run agent.Run, n Renewal) error {
	err := k.renew(run, n)
	if err != nil { // spares may be in the way
		if any, endErr := k.endSpares(ofOwner(run.Owner.UID)); any && endErr == nil {
			err = k.renew(run, n)
		}
	}
	return err
}

func (k *Kernel) renew(run agent.Run, n Renewal) error {
	entry, inSpare := k.spares.settled(n.Reservation)
	err := k.within(run, func(c *call) error {
		r, err := c.reserved(n.Service, n.Reservation)
		if err != nil {
			return err
		}
		if inSpare {
			err = record(c.tx, entry)
		}
		return firstError(err, c.settle(*r, Settlement{Service: n.Service, Used: n.Used}), c.renew(*r, n))
	})
	if err != nil && inSpare {
		k.spares.unsettled(n.Reservation, entry)
	}
	return err
}

// renew reserves anew what was settled.
func (c *call) renew(old budget.Reservation, n Renewal) error {
	chain, err := n.Ceiling.under(c.tx, c.Run, c.now)
	if err != nil {
		return err
	}
	r := budget.Reservation{ID: old.ID, Run: old.Run, Service: old.Service, Begun: true}
	if r.Amounts, err = n.Fit(chain.Left(c.now)); err != nil {
		return err
	}
	if err := chain.Reserve(&r, c.now); err != nil {
		return err
	}
	return firstError(c.tx.PutReservation(r), c.tx.PutChain(chain), record(c.tx, c.serviceEntry(r, n.Service+".renew", r.Amounts)))
}
