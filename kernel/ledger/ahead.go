package ledger

import (
	"cmp"
	"maps"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// sparePart is which part of what is left all spares of a run may be.
const sparePart = 8

// endSpares gives the spares that match back, durably. It reports whether there were any.
func (l *Ledger) endSpares(match func(*spare) bool) (any bool, err error) {
	ended, rows := l.spares.end(match)
	if len(ended) == 0 {
		return false, nil
	}
	err = l.engine.Update("spares", func(tx *store.KernelTx) error {
		for _, row := range rows {
			if err := giveBack(tx, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		l.spares.forget(ended...)
	}
	return true, err
}

// giveBack removes a reservation in which nothing was used, if it is there.
func giveBack(tx *store.KernelTx, r budget.Reservation) error {
	there, err := store.Reservations.Get(tx, store.RunKey(r.Run, r.ID))
	if err != nil || there == nil {
		return err
	}
	chain, err := store.Accounts.Chain(tx, there.Accounts()...)
	if err != nil {
		return err
	}
	return cmp.Or(chain.Release(*there), store.Accounts.PutChain(tx, chain), store.Reservations.Delete(tx, store.RunKey(r.Run, r.ID)))
}

func ofRun(run agent.ID) func(*spare) bool {
	return func(s *spare) bool { return s.run.Spec.ID == run }
}

func ofOwner(uid uint32) func(*spare) bool {
	return func(s *spare) bool { return s.run.Owner.UID == uid }
}

// inSpare reserves in a spare, without a commit; "": none fits.
func (l *Ledger) inSpare(run agent.Run, s Spending) string {
	if s.User != nil { // its entry is its own
		return ""
	}
	for {
		b, entry := l.fitting(run, s)
		if b == nil {
			return ""
		}
		if l.spares.take(b, entry) {
			return b.drawn.ID
		} // else another call was faster, and there is one less
	}
}

// fitting returns the smallest spare in which a call can be made, with the call's entry; nil: there
// is none. A grant with a number of uses needs a commit, because each use is durable.
func (l *Ledger) fitting(run agent.Run, s Spending) (found *spare, entry audit.Entry) {
	idle := l.spares.idle(run.Spec.ID)
	if len(idle) == 0 {
		return nil, entry
	}
	err := l.engine.Look(agentOf(run), func(c *service.Call) error {
		rule, err := l.grants.Cover(c, s.What)
		if err != nil || l.grants.Counted(c, rule) {
			return err
		}
		chain, err := l.under(c.Tx, run, s.Ceiling, c.Now)
		if err != nil {
			return err
		}
		for _, b := range idle {
			if b.fits(chain, s, c.Now) { // the last that s.Fit chose for
				c.ID = b.drawn.ID
				found, entry = b, c.Entry(s.Method, s.What, audit.VerdictAllow)
				entry.Rule = rule
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, entry // the way through the disk says what is wrong
	}
	return found, entry
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
func (l *Ledger) drawAhead(tx *store.KernelTx, next *spare, st Settlement, now time.Time) (r budget.Reservation, err error) {
	if next == nil || !l.spares.may(next) {
		return r, nil
	}
	chain, err := l.under(tx, next.run, st.Ceiling, now)
	if err != nil {
		return r, err
	}
	all := maps.Clone(st.Ahead)
	for _, b := range l.spares.idle(next.run.Spec.ID) {
		all.Add(b.drawn.Amounts)
	}
	if !all.Times(sparePart).Fits(chain.Left(now).Free) {
		return r, nil
	}
	drawn := budget.Reservation{ID: next.drawn.ID, Run: next.run.Spec.ID, Service: st.Service, Amounts: st.Ahead, Begun: true}
	if chain.Reserve(&drawn, now) != nil {
		return r, nil
	}
	if err := store.Reservations.Put(tx, &drawn); err != nil {
		if agent.KindOf(err) == agent.KindConflict { // the run has too many: this one does without
			return r, nil
		}
		return r, err
	}
	return drawn, store.Accounts.PutChain(tx, chain)
}

// offer makes a spare that was drawn known to the next call. One whose row may be there all
// the same, after an error, is given back.
func (l *Ledger) offer(next *spare, drawn budget.Reservation, err error) {
	end := func() { _, _ = l.endSpares(func(s *spare) bool { return s == next }) } // what stays is removed at the end of the run
	switch {
	case next == nil:
	case drawn.ID == "":
		l.spares.forget(next)
	case err != nil || !l.spares.ready(next, drawn, time.AfterFunc(l.SpareTime, end)):
		end()
	}
}
