package control

import (
	"slices"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// maxTries bounds the targets that one call tries: each may take a provider's time to the first
// token.
const maxTries = 4

// mayGoOn reports whether a call goes on with another target if the present one fails.
func (k *call) mayGoOn() bool { return len(k.others) > 0 && k.tries < maxTries }

// another reports whether a call may go on behind such an end: clove-models has passed nothing
// of the answer on. A status that the request may be the reason of is the agent's to read.
func another(d link.Done) bool {
	if link.Overloaded(d.Status) {
		return true
	}
	unanswered := d.Status == 0 && (d.Sent || d.Unreached) || d.Status == statusOK
	return unanswered && d.Error != "" && d.First == 0
}

// goOn has the next target make a call that one has failed.
func (c *Control) goOn(k *call, failed link.Done) {
	k.add(failed)
	if refusal := c.next(k); refusal != nil {
		c.forget(k)
		c.pay(k, k.used, k.usage, true)
		refusal.Number = k.begin.Number
		_ = k.front.conn.Send(link.ToFront{Refuse: refusal})
		return
	}
	if refusal := c.launch(k); refusal != nil { // it has settled
		refusal.Number = k.begin.Number
		_ = k.front.conn.Send(link.ToFront{Refuse: refusal})
	}
}

// stands lets the end of a call stand, where clove-models may wait for more.
func (k *call) stands(d link.Done) {
	if !k.mayGoOn() || d.First > 0 && !link.Overloaded(d.Status) {
		return
	}
	_ = k.front.conn.Send(link.ToFront{Refuse: &link.Refuse{Number: k.begin.Number, Reason: link.ReasonFailed, Message: "no other target may serve the call"}})
}

// next takes a call through the stages for the next target, as decide does for the first.
func (c *Control) next(k *call) *link.Refuse {
	at := c.health.next(k, k.others)
	if at < 0 {
		return refuse(link.ReasonFailed, "no other target may serve the call", "")
	}
	k.target = k.others[at]
	k.others = slices.DeleteFunc(slices.Delete(k.others, at, at+1), func(t config.Target) bool { return routeName(t) == routeName(k.target) })
	k.granted = nil
	if refusal := k.allowed(); refusal != nil { // a grant may have been revoked
		return refusal
	}
	// It keeps what is reserved while it waits: given back, it could be gone.
	if refusal := c.admit(k); refusal != nil {
		return refusal
	}
	return c.raise(k)
}

// raise has the reservation of a call suffice for its next target, beside what those before
// have used.
func (c *Control) raise(k *call) *link.Refuse {
	if refusal := c.estimate(k); refusal != nil {
		return refusal
	}
	needed, raised := sum(k.used, k.bound), false
	needed[budget.ModelCalls] = 1
	for d, amount := range k.reserved {
		needed[d] = max(needed[d], amount)
	}
	for d, amount := range needed {
		raised = raised || amount > k.reserved[d]
	}
	if !raised {
		return nil
	}
	if err := c.options.Ledger.Raise(k.served.run, service, k.reservation, needed); err != nil {
		return refuse(link.ReasonBudget, err.Error(), "")
	}
	k.reserved = needed
	return nil
}

// held is what a call has reserved and not used.
func (k *call) held(d budget.Dimension) int64 {
	if d == budget.Tokens {
		return k.held(budget.TokensIn) + k.held(budget.TokensOut)
	}
	return max(0, k.reserved[d]-k.used[d])
}
