package ledger

import (
	"cmp"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Spending is what one of clove's services is about to do for an agent.
type Spending struct {
	Service string // the part of clove's that settles it
	Method  string // for the audit log
	What    string // what a grant must cover, KIND:PATTERN
	Ceiling *Ceiling
	// User is the user who calls in the agent's place; nil: the agent does.
	User *uint32
	// Fit chooses the amounts, of what is left. Larger amounts are refused; its
	// error is returned as it is, and is no refusal. It may be called more than once, and what
	// it chose last holds. nil: the service needs the grant alone.
	Fit func(budget.Left) (budget.Amounts, error)
	// Allow is called in the transaction in which the call would be allowed, and its error refuses it: people may be asked
	// first. It may be called more than once. nil: there is nothing more to ask.
	Allow func(*service.Call) error
}

// Ceiling is an account that a call spends from beside those of its run, with limits that a
// configuration says. Where nothing is left in it calls are refused, and no run ends.
type Ceiling struct {
	Account budget.Key
	Limits  []budget.Limit // none: what is spent is counted no more than before
}

// under returns a run's chain below a ceiling; nil: there is none.
func (l *Ledger) under(tx *store.KernelTx, run agent.Run, c *Ceiling, now time.Time) (budget.Chain, error) {
	chain, err := l.accounts.Chain(tx, run)
	if err != nil || c == nil {
		return chain, err
	}
	a, err := store.Accounts.Get(tx, string(c.Account))
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
func (l *Ledger) Reserve(run agent.Run, s Spending) (reservation string, err error) {
	if err := l.engine.Room(); err != nil {
		return "", err
	}
	if s.Allow == nil {
		if id := l.inSpare(run, s); id != "" {
			return id, nil
		}
	} else if _, err := l.endSpares(ofRun(run.Spec.ID)); err != nil { // they would be in the way of a call that takes none
		return "", err
	}
	t := try{ledger: l, run: run, spending: s, id: string(agent.NewID())}
	err = t.reserve()
	if t.unfit != nil {
		if any, endErr := l.endSpares(ofOwner(run.Owner.UID)); any && endErr == nil {
			err = t.reserve()
		}
	}
	if t.unfit != nil {
		return "", t.unfit
	}
	if err != nil {
		return "", err
	}
	return t.id, nil
}

// try is one attempt to reserve durably.
type try struct {
	ledger   *Ledger
	run      agent.Run
	spending Spending
	id       string
	unfit    error // of Fit
}

func (t *try) reserve() error {
	t.unfit = nil
	caller := service.Caller{Run: t.run, Agent: true, UID: t.run.Owner.UID, ID: t.id}
	if user := t.spending.User; user != nil {
		caller.Agent, caller.UID = false, *user
	}
	return t.ledger.engine.For(caller, t.spending.Method, t.spending.What, t.decide)
}

// decide is the transaction. It may run more than once.
func (t *try) decide(c *service.Call) (out service.Outcome, err error) {
	l, s := t.ledger, t.spending
	t.unfit, out.About = nil, s.What
	rule, err := l.grants.Cover(c, s.What)
	if err != nil {
		return out, err
	}
	out.Rule = rule
	chain, err := l.under(c.Tx, c.Run, s.Ceiling, c.Now)
	if err != nil {
		return out, err
	}
	r := budget.Reservation{ID: c.ID, Run: c.Run.Spec.ID, Service: s.Service, Begun: true}
	if s.Fit != nil {
		if r.Amounts, t.unfit = s.Fit(chain.Left(c.Now)); t.unfit != nil {
			return out, service.Quiet(t.unfit)
		}
	}
	if err := chain.Reserve(&r, c.Now); err != nil {
		return out, l.accounts.Exceeded(c, chain, err, &out)
	}
	if s.Allow != nil {
		if err := s.Allow(c); err != nil {
			return out, err
		}
	}
	return out, cmp.Or(l.grants.Use(c, rule), store.Reservations.Put(c.Tx, &r), store.Accounts.PutChain(c.Tx, chain))
}

// Allowed reports whether a run's grants cover what a service would do.
func (l *Ledger) Allowed(run agent.Run, what string) (ok bool, err error) {
	err = l.engine.Look(agentOf(run), func(c *service.Call) error {
		_, err := l.grants.Cover(c, what)
		ok = err == nil
		return nil
	})
	return ok, err
}

func agentOf(run agent.Run) service.Caller {
	return service.Caller{Run: run, Agent: true, UID: run.Owner.UID}
}

// Left returns what a run has left of its budgets, and of a ceiling; nil: there is none.
// Spares count as free, since Reserve gives them back where they are in the way.
func (l *Ledger) Left(run agent.Run, ceiling *Ceiling) (left budget.Left, err error) {
	unused := l.spares.unused(run.Owner.UID)
	err = l.engine.Read(func(tx *store.KernelTx) error {
		now := l.engine.Now()
		chain, err := l.under(tx, run, ceiling, now)
		for _, r := range unused {
			chain.Without(r)
		}
		left = chain.Left(now)
		return err
	})
	return left, err
}
