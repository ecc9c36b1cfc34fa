package control

import (
	"slices"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// make decides a call that has a place, and has it made.
func (k *call) make() {
	defer k.asker.decided() // not before the answer is sent: it waits for a clove-models that does not read
	refusal := k.decide()
	if refusal == nil {
		refusal = k.launch()
	}
	if refusal == nil {
		return
	}
	if k.enter(stateRefused) { // else its launch has failed, and it is settled
		k.reportRefused(refusal)
	}
	k.forget()
	k.refuse(refusal)
}

// reportRefused reports a call that was not made. That of a run which its clove-models does not
// serve is no one's.
func (k *call) reportRefused(why *link.Refuse) {
	r := models.Call{Outcome: models.OutcomeRefused, Reason: string(why.Reason)}
	if k.ctx.Err() != nil {
		r = models.Call{Outcome: models.OutcomeCancelled}
	}
	if k.served != nil {
		k.desk.settler.report(k.served, k.about(r))
	}
}

// decide takes a call through the stages until it may be made: what it costs is reserved.
func (k *call) decide() *link.Refuse {
	if k.served == nil {
		return refuse(link.ReasonFailed, senseless, "") // no honest clove-models sends it
	}
	if k.served.uncounted.Tokens() < 1 {
		return &link.Refuse{Reason: link.ReasonBusy, Message: "too many calls of this run have failed", Hint: "ask again later, and wait longer after each failure", After: 1}
	}
	if refusal := k.choose(); refusal != nil {
		return refusal
	}
	if refusal := k.allowed(); refusal != nil {
		return refusal
	}
	defer k.waits()()
	return k.reserve()
}

// done settles a call that has ended, or has another target make it.
func (k *call) done(d link.Done) {
	cancelled, next := k.ctx.Err() != nil, stateSettled
	if !cancelled && k.mayGoOn() && another(d) {
		next = stateFailed
	}
	if !k.enter(next) {
		return
	}
	k.land()
	k.desk.health.report(k.served.caller(), k.target, d, cancelled)
	k.desk.limits.learned(k.target, d.Limits)
	if next == stateFailed {
		k.asker.decides()
		go k.goOn(d)
		return
	}
	k.forget()
	k.cancelled = cancelled
	go k.desk.settler.settle(k.served, &k.bill, d) // it waits for the disk, and other calls end meanwhile
	k.stands(d)
}

// lost settles a call in full whose clove-upstream did not report it: what it used is unknown.
func (k *call) lost() {
	if !k.enter(stateSettled) {
		return
	}
	k.forget()
	k.stands(link.Done{})
	k.spent.add(models.Usage{In: k.reserved[budget.TokensIn], Out: k.reserved[budget.TokensOut]}, k.reserved[budget.CostMicros])
	k.spent.estimated, k.last = true, nil // last: of a try before
	k.desk.settler.pay(k.served, &k.bill, k.reserved, true)
}

// goOn has the next target make a call that one has failed.
func (k *call) goOn(failed link.Done) {
	defer k.asker.decided()
	k.desk.settler.add(k.served, &k.bill, failed)
	tried := k.target
	if refusal := k.next(); refusal != nil {
		k.target, k.cancelled = tried, k.ctx.Err() != nil
		k.enter(stateSettled)
		k.forget()
		k.desk.settler.pay(k.served, &k.bill, k.used, true)
		k.refuse(refusal)
		return
	}
	if refusal := k.launch(); refusal != nil { // it has settled
		k.refuse(refusal)
	}
}

// stands lets the end of a call stand, where clove-models may wait for more.
func (k *call) stands(d link.Done) {
	if !k.mayGoOn() || d.First > 0 && !link.Overloaded(d.Status) {
		return
	}
	k.asker.decides()
	go func() { // it waits for a clove-models that does not read
		defer k.asker.decided()
		k.refuse(noOther())
	}()
}

func noOther() *link.Refuse {
	return refuse(link.ReasonFailed, "no other target may serve the call", "")
}

// next takes a call through the stages for the next target, as decide does for the first.
func (k *call) next() *link.Refuse {
	at := k.desk.health.next(k.served.caller(), k.target, k.others)
	if at < 0 {
		return noOther()
	}
	k.target = k.others[at]
	k.others = slices.DeleteFunc(slices.Delete(k.others, at, at+1), func(t config.Target) bool { return routeName(t) == routeName(k.target) })
	k.granted = nil
	if refusal := k.allowed(); refusal != nil { // a grant may have been revoked
		return refusal
	}
	// It keeps what is reserved while it waits: given back, it could be gone.
	waited := k.waits()
	err := k.admit()
	waited()
	if err == nil {
		err = k.renew()
	}
	return refusal(k.target.Name, err)
}
