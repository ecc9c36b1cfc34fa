package control

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/models/link"
)

// reserve waits until a call may be made: the provider has room for it, and what it can cost
// is reserved. Where other calls hold what it needs it waits for them, but not longer than
// for the first token of an answer.
func (k *call) reserve() *link.Refuse {
	err := k.attempt(nil)
	if !errors.Is(err, errHeld) {
		return refusal(k.target.Name, err)
	}
	ctx, cancel := context.WithTimeout(k.ctx, k.target.Provider.Timeouts.First)
	defer cancel()
	line := &k.served.line
	p := line.enter()
	defer line.leave(p) // behind the reservation: those behind it find what it took
	for {
		var changed <-chan struct{}
		if first, _ := line.look(p); first {
			changed = k.desk.Ledger.Changed() // before looking: nothing is missed
			if err := k.attempt(p); !errors.Is(err, errHeld) {
				return refusal(k.target.Name, err)
			}
		}
		select {
		case <-changed:
		case <-p.first:
		case <-ctx.Done():
			return refusal(k.target.Name, errHeld)
		}
	}
}

// attempt makes a call's reservation, if it is its turn. A call that waits for its provider
// holds nothing of the budget, so the budget is looked at first, and taken last.
func (k *call) attempt(p *queued) error {
	left, err := k.desk.Ledger.Left(k.served.run, k.ceiling(k.served.run.Owner.UID))
	if err == nil {
		_, err = k.turn(left, p)
	}
	if err != nil {
		return err
	}
	if err := k.admit(); err != nil {
		return err
	}
	k.reservation, err = k.desk.Ledger.Reserve(k.served.run, ledger.Spending{Service: Service, Method: "model.call", What: k.what(k.begin.Needs...), Ceiling: k.ceiling(k.served.run.Owner.UID),
		Fit: func(left budget.Left) (amounts budget.Amounts, err error) {
			k.reserved, err = k.turn(left, p)
			return k.reserved, err
		}})
	if err != nil {
		k.places.keep(0)
		return err
	}
	k.enter(stateReserved)
	k.served.fly(k.target.Name, 1)
	return nil
}

// more reserves more output for a call whose answer is longer than its reservation by
// clove-upstream's estimate, once, and returns how much there is then, in tokens; 0: no more.
// The estimate is rough, so an honest answer has as much again where the budgets have it.
func (k *call) more() int64 {
	if k.try.extended || k.reserved[budget.TokensOut] == 0 {
		return 0
	}
	k.try.extended = true
	var reserved budget.Amounts
	err := k.desk.Ledger.Renew(k.served.run, ledger.Renewal{Service: Service, Reservation: k.reservation, Ceiling: k.ceiling(k.served.run.Owner.UID),
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

// turn is fit for the call whose turn it is. One that does not fit in any case is refused
// without waiting.
func (k *call) turn(left budget.Left, p *queued) (budget.Amounts, error) {
	first, others := k.served.line.look(p)
	amounts, err := k.fit(left, others)
	if err == nil && !first && amounts.Fits(left.Unheld) {
		return nil, errHeld
	}
	return amounts, err
}

// renew pays for the tries before at their own provider, and reserves the upper bound of the
// next. The count of calls moves along: all tries are one.
func (k *call) renew() error {
	used, reserved := maps.Clone(k.used), budget.Amounts(nil)
	delete(used, budget.ModelCalls)
	err := k.desk.Ledger.Renew(k.served.run, ledger.Renewal{Service: Service, Reservation: k.reservation, Used: used, Ceiling: k.ceiling(k.served.run.Owner.UID),
		Fit: func(left budget.Left) (_ budget.Amounts, err error) {
			_, others := k.served.line.look(nil)
			reserved, err = k.fit(left, others)
			return reserved, err
		}})
	if err != nil {
		return err
	}
	k.enter(stateReserved)
	k.reserved = reserved
	for d := range used {
		delete(k.used, d)
	}
	return nil
}

// settleQueue has the calls of a run that wait until others have settled, first come first served.
type settleQueue struct {
	mu      sync.Mutex // guards waiting
	waiting []*queued
}

// queued is that of one call in a line.
type queued struct{ first chan struct{} } // has an element when the call may have become the first

func (l *settleQueue) enter() *queued {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &queued{make(chan struct{}, 1)}
	l.waiting = append(l.waiting, p)
	return p
}

func (l *settleQueue) leave(p *queued) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(q *queued) bool { return q == p })
	if len(l.waiting) > 0 {
		select {
		case l.waiting[0].first <- struct{}{}:
		default:
		}
	}
}

// look reports whether a place is the first, and how many others there are. A call that has
// none is the first where nobody waits.
func (l *settleQueue) look(p *queued) (first bool, others int) {
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
