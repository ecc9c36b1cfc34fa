package control

import (
	"clove.run/clove/kernel/ledger"
	"maps"
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
	defer k.front.decided()
	k.add(failed)
	tried := k.target
	if refusal := c.next(k); refusal != nil {
		k.target, k.watched.cancelled = tried, k.ctx.Err() != nil
		c.forget(k)
		c.pay(k, k.used, true)
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
	k.front.decides()
	go func() { // it waits for a clove-models that does not read
		defer k.front.decided()
		_ = k.front.conn.Send(link.ToFront{Refuse: &link.Refuse{Number: k.begin.Number, Reason: link.ReasonFailed, Message: "no other target may serve the call"}})
	}()
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
	waited := c.waits(k)
	err := c.admit(k)
	waited()
	if err == nil {
		err = c.renew(k)
	}
	return k.refusal(err)
}

// renew pays for the tries before at their own provider, and reserves the upper bound of the
// next. The count of calls moves along: all tries are one.
func (c *Control) renew(k *call) error {
	used, reserved := maps.Clone(k.used), budget.Amounts(nil)
	delete(used, budget.ModelCalls)
	err := c.options.Ledger.Renew(k.served.run, ledger.Renewal{Service: Service, Reservation: k.reservation, Used: used, Ceiling: k.ceiling(),
		Fit: func(left budget.Left) (_ budget.Amounts, err error) {
			_, others := k.served.line.look(nil)
			reserved, err = k.fit(left, others)
			return reserved, err
		}})
	if err != nil {
		return err
	}
	k.reserved = reserved
	for d := range used {
		delete(k.used, d)
	}
	return nil
}
