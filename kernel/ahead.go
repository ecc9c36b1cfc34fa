package kernel

import (
	"maps"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// sparePart is which part of what is left all spares of a run may be.
const sparePart = 8

// endSpares gives the spares that match back, durably. It reports whether there were any.
func (k *Kernel) endSpares(match func(*spare) bool) (any bool, err error) {
	ended, rows := k.spares.end(match)
	if len(ended) == 0 {
		return false, nil
	}
	err = k.update("spares", func(tx *store.KernelTx) error {
		for _, row := range rows {
			if err := giveBack(tx, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		k.spares.forget(ended...)
	}
	return true, err
}

// giveBack removes a reservation in which nothing was used, if it is there.
func giveBack(tx *store.KernelTx, r budget.Reservation) error {
	there, err := tx.Reservation(r.Run, r.ID)
	if err != nil || there == nil {
		return err
	}
	chain, err := tx.Chain(there.Accounts()...)
	if err != nil {
		return err
	}
	return firstError(chain.Release(*there), tx.PutChain(chain), tx.DeleteReservation(r.Run, r.ID))
}

func ofRun(run agent.ID) func(*spare) bool {
	return func(s *spare) bool { return s.run.Spec.ID == run }
}

func ofOwner(uid uint32) func(*spare) bool {
	return func(s *spare) bool { return s.run.Owner.UID == uid }
}

// inSpare reserves in a spare, without a commit; "": none fits.
func (k *Kernel) inSpare(on *call, s Spending) string {
	for {
		b := k.fitting(on, s)
		if b == nil {
			return ""
		}
		on.ID = b.drawn.ID
		if k.spares.take(b, on.entry(s.Method, audit.VerdictAllow, "")) {
			return b.drawn.ID
		} // else another call was faster, and there is one less
	}
}

// fitting returns the smallest spare in which a call can be made; nil: there is none. A grant
// with a number of uses needs a commit, because each use is durable.
func (k *Kernel) fitting(on *call, s Spending) (found *spare) {
	idle := k.spares.idle(on.Run.Spec.ID)
	if len(idle) == 0 {
		return nil
	}
	err := k.config.Store.Read(func(tx *store.KernelTx) error {
		on.tx = tx
		if err := on.granted(s.What); err != nil || on.counted() {
			return err
		}
		chain, err := s.Ceiling.under(tx, on.Run, on.now)
		if err != nil {
			return err
		}
		for _, b := range idle {
			if b.fits(chain, s, on.now) { // the last that s.Fit chose for
				found = b
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil // the way through the disk says what is wrong
	}
	return found
}

// counted reports whether the grant that decided has a number of uses, or one above it. What
// cannot be read is counted.
func (c *call) counted() bool {
	changed, err := c.afterUse()
	return err != nil || len(changed) > 0
}

// fits reports whether a call can be made in the spare: every account that the call spends
// from holds it, and it is enough. A call that uses less kinds of amounts, such as a count of
// tokens, leaves it to the next of the kind that it was drawn for.
func (b *spare) fits(chain budget.Chain, s Spending, now time.Time) bool {
	if s.Fit == nil || !b.drawn.HeldBy(chain) {
		return false
	}
	left := chain.Left(now)
	for d := range left.Free {
		left.Free[d] += b.drawn.Amounts[d]
	}
	amounts, err := s.Fit(left)
	if err != nil {
		return false
	}
	for d, amount := range amounts {
		if amount > b.drawn.Amounts[d] {
			return false
		}
	}
	for d := range b.drawn.Amounts {
		if d != budget.Tokens && amounts[d] == 0 { // Tokens is a sum
			return false
		}
	}
	return amounts.Fits(left.Free)
}

// drawAhead draws a spare in the transaction of a settlement, if it is a small part of what
// is left. It returns what was drawn; without an ID nothing was.
func (k *Kernel) drawAhead(tx *store.KernelTx, next *spare, st Settlement, now time.Time) (r budget.Reservation, err error) {
	if next == nil || !k.spares.may(next) {
		return r, nil
	}
	chain, err := st.Ceiling.under(tx, next.run, now)
	if err != nil {
		return r, err
	}
	all := maps.Clone(st.Ahead)
	for _, b := range k.spares.idle(next.run.Spec.ID) {
		all.Add(b.drawn.Amounts)
	}
	if !all.Times(sparePart).Fits(chain.Left(now).Free) {
		return r, nil
	}
	drawn := budget.Reservation{ID: next.drawn.ID, Run: next.run.Spec.ID, Service: st.Service, Amounts: st.Ahead, Begun: true}
	if chain.Reserve(&drawn, now) != nil {
		return r, nil
	}
	if err := tx.PutReservation(drawn); err != nil {
		if agent.KindOf(err) == agent.KindConflict { // the run has too many: this one does without
			return r, nil
		}
		return r, err
	}
	return drawn, tx.PutChain(chain)
}

// offer makes a spare that was drawn known to the next call. One whose row may be there all
// the same, after an error, is given back.
func (k *Kernel) offer(next *spare, drawn budget.Reservation, err error) {
	end := func() { _, _ = k.endSpares(func(s *spare) bool { return s == next }) } // what stays is removed at the end of the run
	switch {
	case next == nil:
	case drawn.ID == "":
		k.spares.forget(next)
	case err != nil || !k.spares.ready(next, drawn, time.AfterFunc(k.spareTime, end)):
		end()
	}
}
