package control

import (
	"clove.run/clove/kernel/ledger"
	"context"
	"errors"
	"slices"
	"sync"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models/link"
)

// line has the calls of a run that wait until others have settled, first come first served.
type line struct {
	mu      sync.Mutex // guards waiting
	waiting []*place
}

// place is that of one call in a line.
type place struct{ first chan struct{} } // has an element when the call may have become the first

func (l *line) enter() *place {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &place{make(chan struct{}, 1)}
	l.waiting = append(l.waiting, p)
	return p
}

func (l *line) leave(p *place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(q *place) bool { return q == p })
	if len(l.waiting) > 0 {
		select {
		case l.waiting[0].first <- struct{}{}:
		default:
		}
	}
}

// look reports whether a place is the first, and how many others there are. A call that has
// none is the first where nobody waits.
func (l *line) look(p *place) (first bool, others int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return true, 0
	}
	if p == nil {
		return false, len(l.waiting)
	}
	return l.waiting[0] == p, len(l.waiting) - 1
}

// reserve waits until a call may be made: the provider has room for it, and what it can cost
// is reserved. Where other calls hold what it needs it waits for them, but not longer than
// for the first token of an answer.
func (c *Control) reserve(k *call) *link.Refuse {
	err := c.attempt(k, nil)
	if !errors.Is(err, errHeld) {
		return k.refusal(err)
	}
	ctx, cancel := context.WithTimeout(k.ctx, k.target.Provider.Timeouts.First)
	defer cancel()
	line := &k.served.line
	p := line.enter()
	defer line.leave(p) // behind the reservation: those behind it find what it took
	for {
		var changed <-chan struct{}
		if first, _ := line.look(p); first {
			changed = c.options.Ledger.Changed() // before looking: nothing is missed
			if err := c.attempt(k, p); !errors.Is(err, errHeld) {
				return k.refusal(err)
			}
		}
		select {
		case <-changed:
		case <-p.first:
		case <-ctx.Done():
			return k.refusal(errHeld)
		}
	}
}

// attempt makes a call's reservation, if it is its turn. A call that waits for its provider
// holds nothing of the budget, so the budget is looked at first, and taken last.
func (c *Control) attempt(k *call, p *place) error {
	left, err := c.options.Ledger.Left(k.served.run, k.ceiling())
	if err == nil {
		_, err = k.turn(left, p)
	}
	if err != nil {
		return err
	}
	if err := c.admit(k); err != nil {
		return err
	}
	k.reservation, err = c.options.Ledger.Reserve(k.served.run, ledger.Spending{Service: Service, Method: "model.call", What: k.what(k.begin.Needs...), Ceiling: k.ceiling(),
		Fit: func(left budget.Left) (amounts budget.Amounts, err error) {
			k.reserved, err = k.turn(left, p)
			return k.reserved, err
		}})
	if err != nil {
		k.places.keep(0)
		return err
	}
	k.served.fly(1)
	return nil
}

// extend reserves more output for a call whose answer is longer than its reservation by
// clove-upstream's estimate, once, and returns how much there is then, in tokens; 0: no more.
// The estimate is rough, so an honest answer has as much again where the budgets have it.
func (c *Control) extend(u *upstream, number uint64) int64 {
	c.mu.Lock()
	k := c.calls[number]
	c.mu.Unlock()
	if k == nil || k.upstream != u || k.extended || k.reserved[budget.TokensOut] == 0 {
		return 0
	}
	k.extended = true
	var reserved budget.Amounts
	err := c.options.Ledger.Renew(k.served.run, ledger.Renewal{Service: Service, Reservation: k.reservation, Ceiling: k.ceiling(),
		Fit: func(left budget.Left) (_ budget.Amounts, err error) {
			reserved, err = k.longer(left)
			return reserved, err
		}})
	if err != nil {
		return 0
	}
	k.reserved = reserved
	return reserved[budget.TokensOut]
}

// ceiling is what the run's owner may spend at the provider.
func (k *call) ceiling() *ledger.Ceiling {
	uid, provider := k.served.run.Owner.UID, k.target.Provider
	return &ledger.Ceiling{Account: budget.ProviderKey(uid, provider.Name), Limits: provider.Budget(uid)}
}

// turn is fit for the call whose turn it is. One that does not fit in any case is refused
// without waiting.
func (k *call) turn(left budget.Left, p *place) (budget.Amounts, error) {
	first, others := k.served.line.look(p)
	amounts, err := k.fit(left, others)
	if err == nil && !first && amounts.Fits(left.Unheld) {
		return nil, errHeld
	}
	return amounts, err
}

// crowdedError is an error of admit.
type crowdedError struct{ error }

func (e *crowdedError) Unwrap() error { return e.error }

// refusal says why a call is not made; nil: it is.
func (k *call) refusal(err error) *link.Refuse {
	var crowded *crowdedError
	switch {
	case errors.Is(err, errHeld), errors.As(err, &crowded):
		return &link.Refuse{Reason: link.ReasonBusy, Message: err.Error(), After: 1}
	case errors.Is(err, errNoPrice):
		return refuse(link.ReasonNoPrice, "no price of "+k.target.Name+" is known, and what may be spent is limited", "add one to /etc/clove/models.yaml")
	}
	return refusalOf(err)
}
