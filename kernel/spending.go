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
	// error is returned as it is, and is no refusal. It may be called more than once, and what
	// it chose last holds. nil: the service needs the grant alone.
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
// is used once, and its upper bound is reserved, durably with the audit entry, which has the
// reservation's id as its correlation. Where a spare fits that is durable already, and the entry
// comes with the settlement. The service settles what it was given, once. After a crash it counts
// as used in full.
func (k *Kernel) Reserve(run agent.Run, s Spending) (reservation string, err error) {
	if err := k.room(); err != nil {
		return "", err
	}
	caller := Caller{Run: run, Agent: true, UID: run.Owner.UID, ID: string(agent.NewID())}
	if id := k.inSpare(&call{Caller: caller, kernel: k, now: k.now(), about: s.What}, s); id != "" {
		return id, nil
	}
	on := &call{Caller: caller, kernel: k, now: k.now(), about: s.What}
	reservation, unfit, err := k.reserve(on, s)
	if unfit != nil {
		if any, endErr := k.endSpares(ofOwner(run.Owner.UID)); any && endErr == nil {
			reservation, unfit, err = k.reserve(on, s)
		}
	}
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

// reserve is the transaction of Reserve. unfit is the error of s.Fit.
func (k *Kernel) reserve(on *call, s Spending) (reservation string, unfit, err error) {
	err = k.update(s.Method, func(tx *store.KernelTx) error {
		*on = call{Caller: on.Caller, kernel: k, tx: tx, now: k.now(), about: s.What} // it may run more than once
		unfit = nil
		if err := on.granted(s.What); err != nil {
			return err
		}
		chain, err := s.Ceiling.under(tx, on.Run, on.now)
		if err != nil {
			return err
		}
		r := budget.Reservation{ID: on.ID, Run: on.Run.Spec.ID, Service: s.Service, Begun: true}
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
	return reservation, unfit, err
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

// afterUse returns what one use of the grant that decided changes: it and those above it, as
// far as their uses are counted.
func (c *call) afterUse() ([]grant.Grant, error) {
	g, err := c.held(c.rule)
	if err != nil {
		return nil, err
	}
	chain, err := chainAbove(c.tx, g)
	if err != nil {
		return nil, err
	}
	return grant.Use(chain, c.now)
}

// use counts one use of the grant that decided.
func (c *call) use() error {
	changed, err := c.afterUse()
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
// Spares count as free, since Reserve gives them back where they are in the way.
func (k *Kernel) Left(run agent.Run, ceiling *Ceiling) (left budget.Left, err error) {
	unused := k.spares.unused(run.Owner.UID)
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		chain, err := ceiling.under(tx, run, k.now())
		for _, r := range unused {
			chain.Without(r)
		}
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
func (k *Kernel) Settle(run agent.Run, st Settlement) error {
	entry, inSpare := k.spares.settled(st.Reservation)
	var next *spare
	if st.Ahead != nil {
		next = k.spares.begin(run)
	}
	var drawn budget.Reservation
	err := k.within(run, func(c *call) error {
		drawn = budget.Reservation{} // it may run more than once
		r, err := c.reserved(st.Service, st.Reservation)
		if err != nil {
			return err
		}
		if inSpare {
			err = record(c.tx, entry)
		}
		if err = firstError(err, c.settle(*r, st)); err == nil {
			drawn, err = k.drawAhead(c.tx, next, st, c.now)
		}
		return err
	})
	if err != nil && inSpare {
		_ = k.append([]audit.Entry{entry}) // the call was made
	}
	k.offer(next, drawn, err)
	return err
}

// reserved returns an open reservation of a service.
func (c *call) reserved(service, reservation string) (*budget.Reservation, error) {
	r, err := c.tx.Reservation(c.Run.Spec.ID, reservation)
	if err == nil && (r == nil || r.Service != service) { // the run has ended: it was settled in full
		err = api.Failure(api.CodeNotFound, "", "no reservation %.64q of %s", reservation, service)
	}
	return r, err
}

// settle pays a reservation from the accounts that hold it.
func (c *call) settle(r budget.Reservation, st Settlement) error {
	chain, err := c.tx.Chain(r.Accounts()...)
	if err != nil {
		return err
	}
	effects, err := chain.Settle(r, st.Used, c.now)
	if err != nil {
		return err
	}
	c.ID = r.ID // what follows from the call has the id of its first record
	_, err = c.spent(r, chain, effects)
	return firstError(err, record(c.tx, c.serviceEntry(r, st.Service+".settle", st.Used)))
}

func (c *call) modelQueue(api.RunParams) (any, error) {
	answer := api.ModelQueueResult{Calls: []api.WaitingCall{}}
	if c.kernel.config.Waiting != nil {
		answer.Calls = append(answer.Calls, c.kernel.config.Waiting(c.Run.Spec.ID)...)
	}
	return answer, nil
}
