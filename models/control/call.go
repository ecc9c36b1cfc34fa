package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"clove.run/clove/internal/packet"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// desk is what the calls of all runs are decided and made with.
type desk struct {
	Options
	limits    limiters
	health    health
	loads     loads
	settler   settler
	upstreams *upstreams
}

// asker is the clove-models that has asked for a call. One that is gone gets no answer.
type asker interface {
	answer(m link.ToFront, files ...*os.File)
	// decides is called before a goroutine that answers a call which has had an answer, decided
	// when the answer was sent.
	decides()
	decided()
	// release frees the call's number.
	release(*call)
}

// call is a request of an agent, from its beginning to its end. What is reserved and used is its
// bill's, what its present try has is the try's.
type call struct {
	lifecycle
	bill
	desk    *desk
	asker   asker
	served  *served
	others  []config.Target // that may serve it, and were not tried
	granted []models.Need
	places  places
	tries   int
	try     try
	ctx     context.Context // until the client has gone
	gone    context.CancelFunc
}

// try is what the present target has of a call.
type try struct {
	upstream *upstream   // nil: none was made
	number   uint64      // in clove-upstream's messages
	extended bool        // more than at first is reserved; clove-upstream's messages guard it
	stop     func() bool // nothing is to be cancelled any more
}

// fly has a clove-upstream make a call, which is sent next.
func (k *call) fly(u *upstream) {
	k.enter(stateFlying)
	number := u.all.number()
	k.try = try{upstream: u, number: number}
	k.desk.loads.add(k.target.Provider.Name, 0, 1)
	k.sent = time.Now()
	k.try.stop = context.AfterFunc(k.ctx, func() { _ = u.Conn.Send(link.ToUpstream{Cancel: number}) }) // of one that has ended, nothing is cancelled
	u.enter(number, k)
}

// land takes a call from its clove-upstream, if one makes it.
func (k *call) land() {
	if u := k.try.upstream; u != nil && u.leave(k.try.number) {
		k.desk.loads.add(k.target.Provider.Name, 0, -1)
		k.try.stop()
	}
}

// forget gives back what a call has but its reservation.
func (k *call) forget() {
	k.land()
	k.asker.release(k)
	k.gone()
	k.places.end()
}

// refuse answers why a call is not made, or not by another target.
func (k *call) refuse(why *link.Refuse) {
	why.Number = k.begin.Number
	k.asker.answer(link.ToFront{Refuse: why})
}

// waits counts a call that waits for its turn, until the function that it returns is called.
func (k *call) waits() (ends func()) {
	began, provider := time.Now(), k.target.Provider.Name
	k.served.wait(1)
	k.desk.loads.add(provider, 1, 0)
	return func() {
		k.served.wait(-1)
		k.desk.loads.add(provider, -1, 0)
		k.wait += time.Since(began)
	}
}

// admit waits until there is room for a call to its target. The error is a *crowdedError.
func (k *call) admit() error {
	tokens := k.begin.In + max(k.begin.Out, 1)*k.begin.N
	return k.desk.limits.admit(k.ctx, &k.places, applicant{k.served.run.Spec.ID, k.target, tokens})
}

// launch has a call made: clove-upstream and clove-models each get one side of a stream.
func (k *call) launch() *link.Refuse {
	failed := func(err error) *link.Refuse {
		if k.enter(stateSettled) { // else its clove-upstream has ended, and it is settled
			k.forget()
			k.desk.settler.settle(k.served, &k.bill, link.Done{})
		}
		return refuse(link.ReasonFailed, err.Error(), "")
	}
	u, err := k.desk.upstreams.get()
	if err != nil {
		k.desk.Log.Error("clove-upstream cannot be started", "error", err)
		return failed(errors.New("the provider's side cannot be started"))
	}
	if err := k.desk.upstreams.keys.use(k.served.run, k.target.Provider, k.begin.Format); err != nil {
		k.desk.Log.Warn("a call of a model is refused", "run", k.served.run.Spec.Name, "error", err)
		return failed(err)
	}
	near, far, err := stream()
	if err != nil {
		return failed(err)
	}
	defer near.Close()
	title := fmt.Sprintf("%s %s %s at %s", k.reservation, k.begin.Format, k.target.Name, k.target.Provider.Name)
	files, err := k.served.contents.copied(title, far, k.served.copy)
	if err != nil {
		far.Close()
		return failed(err)
	}
	k.tries++
	goes := &link.Go{Number: k.begin.Number, Model: k.target.Model, Out: k.out, Granted: k.granted, Again: k.mayGoOn()}
	var headers map[string]string
	if s := k.target.Provider.Subscription; s != nil {
		headers, goes.Renew = k.begin.Headers, keyHint(k.target.Provider)
		if s.NoMaximum { // clove-upstream cuts the answer off where its reservation ends
			goes.Out = 0
		}
	}
	var ticket json.RawMessage // none: the call ends with control
	if k.desk.Journals != "" {
		ticket = k.ticket(k.served.run.Spec.ID) // before the call can end
	}
	k.fly(u)
	err = u.Conn.Send(link.ToUpstream{Call: &link.Call{Number: k.try.number, Owner: k.served.run.Owner.UID, Provider: k.target.Provider.Name, Format: k.begin.Format,
		In: k.reserved[budget.TokensIn], MostOut: k.reserved[budget.TokensOut], Betas: k.begin.Betas, Headers: headers, Ticket: ticket}}, files...)
	packet.CloseAll(files) // before the answer, which waits for clove-models to read
	if err != nil {
		return failed(errors.New("the provider's side is gone"))
	}
	k.asker.answer(link.ToFront{Go: goes}, near) // a process that is gone reads nothing: the stream ends
	return nil
}

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
