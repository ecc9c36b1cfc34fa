package kernel

import (
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/store"
)

// Spending is what one of clove's services is about to do for an agent.
type Spending struct {
	Service string // who settles it
	Method  string // for the audit log
	What    string // what a grant must cover, KIND:PATTERN
	Ceiling *Ceiling
	// Fit chooses the amounts, of what is left. What it chooses beyond that is refused; its
	// error is returned as it is, and is no refusal. It may be called more than once. nil: the
	// service needs the grant alone.
	Fit func(budget.Left) (budget.Amounts, error)
}

// Ceiling is an account that a call spends from beside those of its run, with limits that a
// configuration says. Where nothing is left in it calls are refused, and no run ends.
type Ceiling struct {
	Account budget.Key
	Limits  []budget.Limit // none: what is spent is counted no more than before
}

// under returns a run's chain below a ceiling; nil: there is none.
func (c *Ceiling) under(tx *store.KernelTx, run agent.Run, now time.Time) (budget.Chain, error) {
	chain, err := chainOf(tx, run)
	if err != nil || c == nil {
		return chain, err
	}
	a, err := tx.Account(c.Account)
	if err != nil || a == nil && len(c.Limits) == 0 {
		return chain, err
	}
	if a == nil {
		a = &budget.Account{Key: c.Account}
	}
	a.AtEnd = budget.Refuse
	return append(chain, a), a.Follow(c.Limits, now)
}

// Reserve takes a service's call through the stages until it is done: a grant covers it and
// is used once, and its upper bound is reserved, durably with the audit entry. The service settles what it was
// given, once. After a crash it counts as used in full.
func (k *Kernel) Reserve(run agent.Run, s Spending) (reservation string, err error) {
	if err := k.room(); err != nil {
		return "", err
	}
	on := &call{Caller: Caller{Run: run, Agent: true, UID: run.Owner.UID, ID: string(agent.NewID())}, kernel: k, now: k.now(), about: s.What}
	var unfit error
	err = k.update(s.Method, func(tx *store.KernelTx) error {
		*on = call{Caller: on.Caller, kernel: k, tx: tx, now: k.now(), about: s.What} // it may run more than once
		unfit = nil
		if err := on.granted(s.What); err != nil {
			return err
		}
		chain, err := s.Ceiling.under(tx, run, on.now)
		if err != nil {
			return err
		}
		r := budget.Reservation{ID: string(agent.NewID()), Run: run.Spec.ID, Service: s.Service, Begun: true}
		if s.Fit != nil {
			if r.Amounts, unfit = s.Fit(chain.Left(on.now)); unfit != nil {
				return unfit
			}
		}
		if err := chain.Reserve(&r, on.now); err != nil {
			return on.exceeded(chain, err)
		}
		reservation = r.ID
		return firstError(on.use(), tx.PutReservation(r), tx.PutChain(chain), record(tx, on.entry(s.Method, audit.VerdictAllow, "")))
	})
	if unfit != nil {
		return "", unfit
	}
	if err == nil {
		k.queue.wake()
		on.decided()
		err = firstError(k.publishChange(on), on.refusal)
	}
	if err != nil {
		on.refused(s.Method, []byte(s.What), err)
		return "", err
	}
	return reservation, nil
}

// granted refuses what no grant covers.
func (c *call) granted(what string) error {
	scope, err := grant.Parse(what)
	if err != nil {
		return err
	}
	held, err := effective(c.tx, c.Run.Spec.ID)
	if err != nil {
		return err
	}
	allowing, reason, ok := grant.Check(held, scope, c.now)
	if !ok {
		return api.Failure(api.CodeDenied, "", "%s", reason).By(stageGrant, "")
	}
	c.rule = allowing.ID
	return nil
}

// use counts one use of the grant that decided.
func (c *call) use() error {
	g, err := c.held(c.rule)
	if err != nil {
		return err
	}
	chain, err := chainAbove(c.tx, g)
	if err != nil {
		return err
	}
	changed, err := grant.Use(chain, c.now)
	if err != nil {
		return err
	}
	for _, g := range changed {
		if err := c.tx.PutGrant(g); err != nil {
			return err
		}
	}
	return nil
}

// Allowed reports whether a run's grants cover what a service would do.
func (k *Kernel) Allowed(run agent.Run, what string) (ok bool, err error) {
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		ok = (&call{Caller: Caller{Run: run, Agent: true}, kernel: k, tx: tx, now: k.now()}).granted(what) == nil
		return nil
	})
	return ok, err
}

// Left returns what a run has left of its budgets, and of a ceiling; nil: there is none.
func (k *Kernel) Left(run agent.Run, ceiling *Ceiling) (left budget.Left, err error) {
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		chain, err := ceiling.under(tx, run, k.now())
		left = chain.Left(k.now())
		return err
	})
	return left, err
}

// Changed returns a channel that is closed with the next change of any account. Who waits for
// more to be left takes it before they look.
func (k *Kernel) Changed() <-chan struct{} { return k.changes.next() }

// changes lets any number of goroutines wait for the next change. The zero value is ready.
type changes struct {
	mu      sync.Mutex    // guards the following
	waiting chan struct{} // nil: nobody waits
}

func (c *changes) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = make(chan struct{})
	}
	return c.waiting
}

func (c *changes) happened() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting != nil {
		close(c.waiting)
		c.waiting = nil
	}
}

// Settle gives back what a service reserved and adds what was used, also where that is
// more: over says by how much.
func (k *Kernel) Settle(run agent.Run, service, reservation string, used budget.Amounts) (over budget.Amounts, err error) {
	err = k.within(run, func(c *call) error {
		r, err := c.tx.Reservation(run.Spec.ID, reservation)
		if err != nil {
			return err
		}
		if r == nil || r.Service != service { // the run has ended: it was settled in full
			return api.Failure(api.CodeNotFound, "", "no reservation %.64q of %s", reservation, service)
		}
		chain, err := c.tx.Chain(r.Accounts()...)
		if err != nil {
			return err
		}
		effects, err := chain.Settle(*r, used, c.now)
		if err != nil {
			return err
		}
		over = effects.Over
		_, err = c.spent(*r, chain, effects)
		return firstError(err, record(c.tx, c.serviceEntry(*r, service+".settle", used)))
	})
	return over, err
}
