package control

import (
	"clove.run/clove/kernel/ledger"
	"context"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// enter notes a call that is being made.
func (c *Control) enter(k *call, u *upstream) {
	c.mu.Lock()
	c.last++
	k.number, k.upstream = c.last, u
	number := k.number
	c.calls[number] = k
	u.calls++
	c.loads.fly(k.target.Provider.Name, 1)
	k.watched.sent = time.Now()
	k.settled = context.AfterFunc(k.ctx, func() { _ = u.conn.Send(link.ToUpstream{Cancel: number}) }) // of one that has ended, nothing is cancelled
	c.mu.Unlock()
}

// forget takes a call out of those that are being made. It reports whether it was there.
func (c *Control) forget(k *call) bool {
	found := c.detach(k)
	k.front.release(k)
	k.gone()
	k.places.end()
	return found
}

// detach takes a call from its clove-upstream. It reports whether one was making it.
func (c *Control) detach(k *call) bool {
	c.mu.Lock()
	_, found := c.calls[k.number]
	delete(c.calls, k.number)
	if found {
		k.upstream.calls--
		c.loads.fly(k.target.Provider.Name, -1)
		c.retire(k.upstream)
	}
	c.mu.Unlock()
	if k.settled != nil {
		k.settled()
	}
	return found
}

// retire ends a clove-upstream whose configuration holds no longer, behind its last call.
// c.mu is held.
func (c *Control) retire(u *upstream) {
	if u != c.upstream && u.calls == 0 {
		go u.end()
	}
}

// done settles a call that has ended, or has another target make it.
func (c *Control) done(u *upstream, d link.Done) {
	if c.tested(u, d) {
		return
	}
	c.mu.Lock()
	k := c.calls[d.Number]
	c.mu.Unlock()
	if k == nil || k.upstream != u {
		return
	}
	cancelled := k.ctx.Err() != nil
	if !c.detach(k) {
		return
	}
	c.health.report(k, d, cancelled)
	c.learned(k, d.Limits)
	if !cancelled && k.mayGoOn() && another(d) {
		k.front.decides()
		go c.goOn(k, d)
		return
	}
	c.forget(k)
	k.watched.cancelled = cancelled
	go c.settle(k, d) // it waits for the disk, and other calls end meanwhile
	k.stands(d)
}

// lost settles, in full, the calls that a clove-upstream did not report: what they used is
// unknown.
func (c *Control) lost(u *upstream) {
	c.mu.Lock()
	var all []*call
	for _, k := range c.calls {
		if k.upstream == u {
			all = append(all, k)
		}
	}
	c.mu.Unlock()
	for _, k := range all {
		if c.forget(k) {
			k.stands(link.Done{})
			k.spent.add(models.Usage{In: k.reserved[budget.TokensIn], Out: k.reserved[budget.TokensOut]}, k.reserved[budget.CostMicros])
			k.watched.done = nil // of a try before
			c.pay(k, k.reserved, true)
		}
	}
}

// statusOK is HTTP's; package net/http would make clove larger.
const statusOK = 200

// settle pays for what a call used, with all its tries.
func (c *Control) settle(k *call, d link.Done) {
	k.add(d)
	c.pay(k, k.used, d.Status != statusOK)
}

// add adds what a try used. All of them are one call.
func (k *call) add(d link.Done) {
	k.watched.done = &d
	u := d.Usage
	used := budget.Amounts{budget.TokensIn: u.In + u.CacheWrite, budget.TokensOut: u.Out, budget.TokensCached: u.Cached}
	if k.target.Price != nil {
		used[budget.CostMicros] = k.target.Price.Cost(u, d.Tiers...)
	}
	k.spent.add(u, used[budget.CostMicros])
	k.spent.over = k.spent.over || k.exceeded(used)
	k.used = sum(k.used, used)
	if counts(d) {
		k.used[budget.ModelCalls] = 1
	} else {
		k.served.uncounted.Reserve()
	}
}

// Of the calls that are no model_calls a run has as many at once, and then as many in a second:
// no budget bounds what an agent has a provider answer with them.
const (
	maxUncounted       = 60
	uncountedPerSecond = 1
)

// counts reports whether a try makes its call one of model_calls: the provider has served the
// request, has refused it for what it says, or may have served it.
func counts(d link.Done) bool {
	return d.Sent && (d.Status < 300 || d.Status >= 400 && d.Status < statusFailed && d.Status != statusTooMany)
}

func (s *spent) add(u models.Usage, cost int64) {
	s.usage, s.cost = s.usage.Plus(u), budget.Sum(s.cost, cost)
}

// sum adds amounts, and leaves out those that are 0.
func sum(a, b budget.Amounts) budget.Amounts {
	all := budget.Amounts{}
	for _, part := range []budget.Amounts{a, b} {
		for d, amount := range part {
			if amount != 0 {
				all[d] = budget.Sum(all[d], amount)
			}
		}
	}
	return all
}

// pay settles a call's reservation, and counts it for the run.
func (c *Control) pay(k *call, used budget.Amounts, failed bool) {
	err := c.options.Ledger.Settle(k.served.run, ledger.Settlement{Service: Service, Reservation: k.reservation, Used: used, Ahead: k.ahead(failed), Ceiling: k.ceiling()})
	if err != nil && agent.KindOf(err) != agent.KindNotFound && api.ErrorOf(err).Code != api.CodeNotFound {
		c.options.Log.Error("a call of a model is not settled", "run", k.served.run.Spec.ID, "error", err)
	}
	k.served.tally.count(k.target.Name, k.spent, failed)
	k.served.fly(-1)
	k.reportPaid()
}

// exceeded reports whether a try used more than was reserved for it. Where nothing bounds the
// output, none was reserved.
func (k *call) exceeded(used budget.Amounts) bool {
	for d, amount := range used {
		if most := k.reserved[d]; most > 0 && amount > most {
			return true
		}
	}
	return false
}

// ahead is what the next call of the run may want: as this one, with twice the input, because
// a conversation grows. A call that failed says nothing of the next.
func (k *call) ahead(failed bool) budget.Amounts {
	if failed || k.found || k.begin.Format == models.AnthropicCount {
		return nil
	}
	return k.boundOf(2*k.input(), k.out)
}
