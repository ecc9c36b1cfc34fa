package control

import (
	"clove.run/clove/kernel/ledger"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// Service is the name under which models reserve.
const Service = "model"

const (
	maxAnswers = 128
	// maxTokens bounds what a request may say of tokens: above every model's, and sums do not
	// overflow.
	maxTokens = 1 << 40
)

// needs are the rights that a call may need beside its model's. Each is one of the grant's.
var needs = []models.Need{models.ProviderTools, models.ProviderState}

// call is one that was permitted and is not settled.
type call struct {
	number      uint64 // control's
	begin       link.Begin
	served      *served
	front       *front
	target      config.Target
	others      []config.Target // that may serve it, and were not tried
	tries       int
	upstream    *upstream // that makes it; nil: none yet
	granted     []models.Need
	out         int64 // the most that each answer may have, tokens; 0: nothing bounds it
	reservation string
	reserved    budget.Amounts  // for the present try
	extended    bool            // more than at first; clove-upstream's messages guard it
	used        budget.Amounts  // by tries that have ended, and not paid
	spent       spent           // by all tries that have ended
	ctx         context.Context // until the client has gone
	gone        context.CancelFunc
	settled     func() bool // nothing is to be cancelled any more; nil: it is not being made
	places      places
	watched     watched
	found       bool // another control has made it
}

// spent is what the run's record says of a call.
type spent struct {
	usage models.Usage
	cost  int64 // in millionths of a dollar
	over  bool  // a try used more than was reserved for it
}

// begin gives a call a place. What makes no sense gets none: what is held is short.
func (f *front) begin(b link.Begin) {
	if !sensible(b) { // no honest clove-models sends it
		_ = f.conn.Send(link.ToFront{Refuse: &link.Refuse{Number: b.Number, Reason: link.ReasonFailed, Message: senseless}})
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{begin: b, front: f, ctx: ctx, gone: cancel, watched: watched{began: time.Now()}}
	switch free, full := f.take(c); {
	case !free: // the number is in use: no honest clove-models does that
		cancel()
	case full:
		cancel()
		_ = f.conn.Send(link.ToFront{Refuse: &link.Refuse{Number: b.Number, Reason: link.ReasonBusy, Message: "too many calls are in flight", After: 1}})
	default:
		go f.make(c)
	}
}

// senseless answers what no honest clove-models asks.
const senseless = "the call makes no sense"

// make decides a call that has a place, and has it made.
func (f *front) make(c *call) {
	defer f.decided() // not before the answer is sent: it waits for a clove-models that does not read
	refusal := c.decide()
	if refusal == nil {
		refusal = f.control.launch(c)
	}
	if refusal != nil {
		c.reportRefused(refusal)
		f.control.forget(c)
		refusal.Number = c.begin.Number
		_ = f.conn.Send(link.ToFront{Refuse: refusal})
	}
}

func refuse(reason link.Reason, message, hint string) *link.Refuse {
	return &link.Refuse{Reason: reason, Message: message, Hint: hint}
}

// decide takes a call through the stages until it may be made: what it costs is reserved.
func (k *call) decide() (refusal *link.Refuse) {
	b, c := k.begin, k.front.control
	k.served = k.front.servedBy(b.Run)
	if k.served == nil {
		return refuse(link.ReasonFailed, senseless, "") // no honest clove-models sends it
	}
	if k.served.uncounted.Tokens() < 1 {
		return &link.Refuse{Reason: link.ReasonBusy, Message: "too many calls of this run have failed", Hint: "ask again later, and wait longer after each failure", After: 1}
	}
	if refusal := c.choose(k); refusal != nil {
		return refusal
	}
	if refusal := k.allowed(); refusal != nil {
		return refusal
	}
	defer c.waits(k)()
	return c.reserve(k)
}

// sensible reports whether an honest clove-models may have sent b. What goes on to other
// processes is short and plain.
func sensible(b link.Begin) bool {
	if len(b.Model) > link.MaxName || len(b.Run) > link.MaxName {
		return false
	}
	for _, words := range [][]string{b.Tiers, b.Betas} {
		if len(words) > link.MaxWords || slices.ContainsFunc(words, func(w string) bool { return !link.IsWord(w) }) {
			return false
		}
	}
	for _, need := range b.Needs {
		if !slices.Contains(needs, need) {
			return false
		}
	}
	if b.Trace != "" && !link.IsTraceparent(b.Trace) {
		return false
	}
	return b.In >= 0 && len(b.Needs) <= len(needs) && b.Out >= 0 && b.N >= 1 && b.N <= maxAnswers && max(b.In, b.Out) <= maxTokens && b.Format.Family() != ""
}

// what is what a grant must cover: the call of the model, with the first thing that it needs
// beside it.
func (k *call) what(needs ...models.Need) string {
	if len(needs) == 0 {
		return "model:" + k.target.Name
	}
	return "model:" + k.target.Name + ":" + string(needs[0])
}

// allowed refuses what no grant covers, before the call waits for its turn.
func (k *call) allowed() *link.Refuse {
	if refusal := k.covered(k.what()); refusal != nil {
		return refusal
	}
	for _, need := range k.begin.Needs {
		if refusal := k.covered(k.what(need)); refusal != nil {
			refusal.Reason, refusal.Hint = link.ReasonNeed, "leave the field out, or ask for the grant "+k.what(need)
			return refusal
		}
	}
	for _, need := range needs {
		if ok, err := k.front.control.options.Ledger.Allowed(k.served.run, k.what(need)); ok && err == nil {
			k.granted = append(k.granted, need)
		}
	}
	return nil
}

// covered refuses what no grant of the run covers.
func (k *call) covered(what string) *link.Refuse {
	ok, err := k.front.control.options.Ledger.Allowed(k.served.run, what)
	if err == nil && ok {
		return nil
	}
	if err != nil {
		return refusalOf(err)
	}
	// Reserve says why, and records the refusal.
	reservation, err := k.front.control.options.Ledger.Reserve(k.served.run, ledger.Spending{Service: Service, Method: "model.call", What: what})
	if err == nil { // it was granted meanwhile
		_ = k.front.control.options.Ledger.Settle(k.served.run, ledger.Settlement{Service: Service, Reservation: reservation}) // else the end of the run settles it
		return refuse(link.ReasonBusy, "the grants have changed", "ask again")
	}
	return refusalOf(err)
}

// choose chooses who answers, and notes who else may.
func (c *Control) choose(k *call) *link.Refuse {
	b, s := k.begin, k.served
	targets, err := c.options.Config().Resolve(b.Model, s.run.Owner.UID, s.groups)
	var unknown *config.UnknownModelError
	switch {
	case errors.As(err, &unknown):
		return refuse(link.ReasonUnknown, err.Error(), "")
	case err != nil:
		return refuse(link.ReasonNotGranted, err.Error(), "")
	}
	targets = slices.DeleteFunc(targets, func(t config.Target) bool { return !t.Provider.Speaks(b.Format.Family()) })
	if len(targets) == 0 {
		return refuse(link.ReasonUnknown, "the model "+b.Model+" does not speak "+string(b.Format.Family()), "call it with a client of its own family")
	}
	at := c.health.choose(k, targets)
	k.target = targets[at]
	k.others = slices.DeleteFunc(slices.Delete(targets, at, at+1), func(t config.Target) bool {
		return routeName(t) == routeName(k.target) || k.unsuited(t) != nil
	})
	return k.unsuited(k.target)
}

// unsuited says why a target cannot serve a call.
func (k *call) unsuited(t config.Target) *link.Refuse {
	if t.Context > 0 && k.begin.In > t.Context {
		return refuse(link.ReasonContext, "the request is longer than the context of "+t.Name, "")
	}
	return nil
}

// refusalOf says why nothing was reserved.
func refusalOf(err error) *link.Refuse {
	if err == nil {
		return nil
	}
	e := api.ErrorOf(err)
	switch e.Code {
	case api.CodeDenied:
		return refuse(link.ReasonNotGranted, e.Message, e.Data.Hint)
	case api.CodeBudget:
		return refuse(link.ReasonBudget, e.Message, e.Data.Hint)
	case api.CodeBusy:
		return refuse(link.ReasonBusy, e.Message, e.Data.Hint)
	}
	return refuse(link.ReasonFailed, e.Message, e.Data.Hint)
}

// launch has a call made: clove-upstream and clove-models each get one side of a stream.
func (c *Control) launch(k *call) *link.Refuse {
	entered := false
	failed := func(err error) *link.Refuse {
		if c.forget(k) || !entered { // else its clove-upstream has ended, and it is settled
			c.settle(k, link.Done{})
		}
		return refuse(link.ReasonFailed, err.Error(), "")
	}
	u, err := c.provider()
	if err != nil {
		c.options.Log.Error("clove-upstream cannot be started", "error", err)
		return failed(errors.New("the provider's side cannot be started"))
	}
	near, far, err := stream()
	if err != nil {
		return failed(err)
	}
	defer near.Close()
	files, err := c.copied(k, far)
	if err != nil {
		far.Close()
		return failed(err)
	}
	k.tries++
	k.extended = false
	goes := &link.Go{Number: k.begin.Number, Model: k.target.Model, Out: k.out, Granted: k.granted, Again: k.mayGoOn()}
	ticket := k.ticket() // before the call can end
	c.enter(k, u)
	entered = true
	err = u.conn.Send(link.ToUpstream{Call: &link.Call{Number: k.number, Owner: k.front.uid, Provider: k.target.Provider.Name, Format: k.begin.Format,
		In: k.reserved[budget.TokensIn], MostOut: k.reserved[budget.TokensOut], Betas: k.begin.Betas, Ticket: ticket}}, files...)
	packet.CloseAll(files) // before the answer, which waits for clove-models to read
	if err != nil {
		return failed(errors.New("the provider's side is gone"))
	}
	_ = k.front.conn.Send(link.ToFront{Go: goes}, near) // a process that is gone reads nothing: the stream ends
	return nil
}

// stream makes the two sides over which a call's body and answer pass.
func stream() (near, far *os.File, err error) {
	return passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
}
