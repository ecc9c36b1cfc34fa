package ledger

import (
	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
	"cmp"
)

// Settlement is what became of a reservation.
type Settlement struct {
	Service, Reservation string
	Used                 budget.Amounts
	// Ahead is drawn for the service's next call of the run, if it is a small part of what is
	// left; nil: nothing.
	Ahead   budget.Amounts
	Ceiling *Ceiling
}

// Settle gives back what a service reserved and adds what was used, also where that is more.
func (l *Ledger) Settle(run agent.Run, st Settlement) error {
	entry, inSpare := l.spares.settled(st.Reservation)
	var next *spare
	if st.Ahead != nil {
		next = l.spares.begin(run)
	}
	var drawn budget.Reservation
	err := l.engine.Within(run, "settle", st.Reservation, func(c *service.Call) (out service.Outcome, err error) {
		drawn = budget.Reservation{} // it may run more than once
		r, err := reserved(c, st.Service, st.Reservation)
		if err != nil {
			return out, err
		}
		if inSpare {
			err = service.Record(c.Tx, entry)
		}
		if err = cmp.Or(err, l.settle(c, *r, st, &out)); err == nil {
			drawn, err = l.drawAhead(c.Tx, next, st, c.Now)
		}
		return out, err
	})
	if err != nil && inSpare {
		_ = l.engine.Append([]audit.Entry{entry}) // the call was made
	}
	l.offer(next, drawn, err)
	return err
}

// reserved returns an open reservation of a service.
func reserved(c *service.Call, of, reservation string) (*budget.Reservation, error) {
	r, err := store.Reservations.Get(c.Tx, store.RunKey(c.Run.Spec.ID, reservation))
	if err == nil && (r == nil || r.Service != of) { // the run has ended: it was settled in full
		err = api.Failure(api.CodeNotFound, "", "no reservation %.64q of %s", reservation, of)
	}
	return r, err
}

// settle pays a reservation from the accounts that hold it. Later records of the call have
// the id of its first one, which is the reservation's.
func (l *Ledger) settle(c *service.Call, r budget.Reservation, st Settlement, out *service.Outcome) error {
	chain, err := store.Accounts.Chain(c.Tx, r.Accounts()...)
	if err != nil {
		return err
	}
	effects, err := chain.Settle(r, st.Used, c.Now)
	if err != nil {
		return err
	}
	return cmp.Or(l.accounts.Spent(c, chain, out, effects), store.Reservations.Delete(c.Tx, store.RunKey(r.Run, r.ID)), service.Record(c.Tx, entryOf(c, r, st.Service+".settle", st.Used)))
}

// entryOf is the audit entry of what a service does with its reservation.
func entryOf(c *service.Call, r budget.Reservation, method string, amounts budget.Amounts) audit.Entry {
	e := c.Entry(method, amounts.Text(), audit.VerdictAllow)
	e.Kind, e.Principal = audit.KindDecision, audit.PrincipalService(r.Service)
	e.Digest = service.Digest(method, e.What)
	return e
}
