package budget

import (
	"math"
	"time"
)

// Claimed reports whether an agent's word fills a line of k that other runs spend from too: k is
// an account above that of the run whose own is own, and d a dimension that agents charge.
func (k Key) Claimed(d Dimension, own Key) bool { return !(k.ofRun() && k == own) && !d.Counted() }

// above reports whether an account is one above the run's own.
func (c Chain) above(a *Account) bool { return !a.Key.ofRun() || a.Key != c[0].Key }

// Claim settles r with what an agent says it has used; the zero Reservation: nothing was
// reserved for it. The run's own account counts all, also beyond its limit. An account above
// counts at most what is left there and of the run's own line, or what r holds where that is
// more. The error is an *Exceeded, and nothing has changed, where an account above has nothing
// left beside r, or less than is claimed by a run without a limit of its own.
func (c Chain) Claim(r Reservation, claimed Amounts, now time.Time) (e Effects, err error) {
	claimed, err = c.take(claimed, now)
	if err != nil {
		return e, err
	}
	if over := c.unclaimable(r, claimed); over != nil {
		return e, over
	}
	if err := c.Release(r); err != nil {
		return e, err
	}
	e.Used = Amounts{}
	for _, d := range claimed.sorted() {
		own, used := c.ownLeft(d), c.ownUsed(d)
		e.Used[d] = min(claimed[d], max(own, r.Amounts[d]))
		for _, a := range c.with(d) {
			amount := claimed[d]
			if c.above(a) {
				amount = min(amount, max(min(own, a.Lines[d].Free()), r.Amounts[d]))
			}
			c.add(&e, a, d, amount, e.Used[d], used)
		}
	}
	return e, nil
}

// unclaimable returns the line above the run's that has too little left for a claim; nil: none.
func (c Chain) unclaimable(r Reservation, claimed Amounts) *Exceeded {
	for _, d := range claimed.sorted() {
		for _, a := range c.with(d) {
			left := a.Lines[d].Free() + r.Held[a.Key][d]
			bounded := c.ownLeft(d) < math.MaxInt64 && left > 0
			if c.above(a) && claimed[d] > max(left, r.Amounts[d]) && !bounded {
				return &Exceeded{Notice: notice(a, d), Wanted: claimed[d]}
			}
		}
	}
	return nil
}

// ownLeft is what is left of the run's own line; math.MaxInt64 where that has no limit.
func (c Chain) ownLeft(d Dimension) int64 {
	if own := c[0].Lines[d]; own != nil && !own.Unlimited {
		return max(0, own.Free())
	}
	return math.MaxInt64
}

// ownUsed is what the run itself has used.
func (c Chain) ownUsed(d Dimension) int64 {
	if own := c[0].Lines[d]; own != nil && c[0].Key.ofRun() {
		return own.Used
	}
	return 0
}

// add charges one line with an amount of what the run wanted, when it had used so much itself. An account above that has
// nothing left since of what agents charge stops this run or none.
func (c Chain) add(e *Effects, a *Account, d Dimension, amount, wanted, used int64) {
	l, before := a.Lines[d], len(e.Ended)
	had := l.Used < l.Granted
	e.charge(a, d, amount)
	if !a.Key.Claimed(d, c[0].Key) || !c[0].Key.ofRun() || l.Unlimited || !had || l.Used < l.Granted {
		return
	}
	over := &Exceeded{Notice: notice(a, d), Wanted: wanted}
	if !c.stop(over, used) {
		over.AtEnd = Refuse
	}
	e.Ended = append(e.Ended[:before], over.Notice)
}
