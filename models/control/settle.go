package control

import (
	"context"
	"maps"
	"slices"
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
	c.mu.Lock()
	_, found := c.calls[k.number]
	delete(c.calls, k.number)
	if found {
		k.upstream.calls--
		c.loads.fly(k.target.Provider.Name, -1)
		c.retire(k.upstream)
	}
	c.mu.Unlock()
	k.front.release(k)
	if k.settled != nil {
		k.settled()
	}
	k.gone()
	if k.leave != nil {
		k.leave()
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

// done settles a call that has ended.
func (c *Control) done(u *upstream, d link.Done) {
	c.mu.Lock()
	k := c.calls[d.Number]
	c.mu.Unlock()
	if k == nil || k.upstream != u {
		return
	}
	cancelled := k.ctx.Err() != nil
	if c.forget(k) {
		c.health.report(k.target, d, cancelled)
		k.watched.cancelled = cancelled
		c.settle(k, d)
	}
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
			c.pay(k, k.reserved, models.Usage{In: k.reserved[budget.TokensIn], Out: k.reserved[budget.TokensOut]}, true)
		}
	}
}

// statusOK is HTTP's; package net/http would make clove larger.
const statusOK = 200

// settle pays for what a call used.
func (c *Control) settle(k *call, d link.Done) {
	k.watched.done = &d
	used := budget.Amounts{}
	if d.Sent {
		used[budget.ModelCalls] = 1
	}
	u := d.Usage
	used[budget.TokensIn], used[budget.TokensOut], used[budget.TokensCached] = u.In+u.CacheWrite, u.Out, u.Cached
	if k.target.Price != nil {
		used[budget.CostMicros] = k.target.Price.Cost(u, d.Tiers...)
	}
	for dimension, amount := range used {
		if amount == 0 {
			delete(used, dimension)
		}
	}
	c.pay(k, used, u, d.Status != statusOK)
}

// pay settles a call's reservation, and counts it for the run.
func (c *Control) pay(k *call, used budget.Amounts, u models.Usage, failed bool) {
	over, err := c.options.Ledger.Settle(k.served.run, service, k.reservation, used)
	if err != nil && agent.KindOf(err) != agent.KindNotFound && api.ErrorOf(err).Code != api.CodeNotFound {
		c.options.Log.Error("a call of a model is not settled", "run", k.served.run.Spec.ID, "error", err)
	}
	k.served.count(k.target.Name, u, used[budget.CostMicros], failed, k.exceeded(over))
	k.served.fly(-1)
	k.reportPaid(u, used[budget.CostMicros])
}

// exceeded reports whether a call used more than was reserved for it. Where nothing bounds the
// output, none was reserved.
func (k *call) exceeded(over budget.Amounts) bool {
	for d := range over {
		if k.reserved[d] > 0 {
			return true
		}
	}
	return false
}

// count adds a call to what the run has used.
func (s *served) count(model string, u models.Usage, cost int64, failed, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	use := s.used[model]
	if use == nil {
		use = &agent.ModelUse{Model: model}
		s.used[model] = use
	}
	use.Calls++
	use.TokensIn += u.In + u.CacheWrite // as in the budgets
	use.TokensOut += u.Out
	use.TokensCached += u.Cached
	use.CostMicros += cost
	if failed {
		use.Failed++
	}
	if over {
		use.Over++
	}
}

// total returns what the run has used, sorted by model.
func (s *served) total() []agent.ModelUse {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []agent.ModelUse
	for _, name := range slices.Sorted(maps.Keys(s.used)) {
		all = append(all, *s.used[name])
	}
	return all
}
