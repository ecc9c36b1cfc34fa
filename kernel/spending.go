package kernel

import (
	"math"

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
	Amounts budget.Amounts
}

// Reserve takes a service's call through the stages until it is done: a grant covers it and
// is used once, and its upper bound is reserved, durably with the audit entry, which has the
// reservation's id as its correlation. The service settles what it was given, once. After a
// crash it counts as used in full.
func (k *Kernel) Reserve(run agent.Run, s Spending) (reservation string, err error) {
	if err := k.room(); err != nil {
		return "", err
	}
	on := &call{Caller: Caller{Run: run, Agent: true, UID: run.Owner.UID, ID: string(agent.NewID())}, kernel: k, now: k.now(), about: s.What}
	err = k.update(s.Method, func(tx *store.KernelTx) error {
		*on = call{Caller: on.Caller, kernel: k, tx: tx, now: k.now(), about: s.What} // it may run more than once
		if err := on.granted(s.What); err != nil {
			return err
		}
		chain, err := chainOf(tx, run)
		if err != nil {
			return err
		}
		r := budget.Reservation{ID: on.ID, Run: run.Spec.ID, Service: s.Service, Amounts: s.Amounts, Begun: true}
		if err := chain.Reserve(&r, on.now); err != nil {
			return on.exceeded(chain, err)
		}
		reservation = r.ID
		return firstError(on.use(), tx.PutReservation(r), tx.PutChain(chain), record(tx, on.entry(s.Method, audit.VerdictAllow, "")))
	})
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

// Free returns how much of a dimension a run could still reserve; math.MaxInt64 where
// nothing limits it.
func (k *Kernel) Free(run agent.Run, d budget.Dimension) (free int64, err error) {
	free = math.MaxInt64
	err = k.config.Store.Read(func(tx *store.KernelTx) error {
		chain, err := chainOf(tx, run)
		for _, a := range chain {
			if l := a.Lines[d]; l != nil && !l.Unlimited {
				free = min(free, l.Free())
			}
		}
		return err
	})
	return free, err
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
		c.ID = r.ID // what follows from the call has the id of its first record
		_, err = c.spent(*r, chain, effects)
		return firstError(err, record(c.tx, c.serviceEntry(*r, service+".settle", used)))
	})
	return over, err
}
