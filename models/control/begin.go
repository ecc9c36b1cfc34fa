package control

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// service is the name under which models reserve.
const service = "model"

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
	upstream    *upstream // that makes it; nil: none yet
	granted     []models.Need
	reservation string
	reserved    budget.Amounts
	ctx         context.Context // until the client has gone
	gone        context.CancelFunc
	settled     func() bool // nothing is to be cancelled any more; nil: it is not being made
	leave       func()      // gives its place at the provider back; nil: it has none
	watched     watched
}

// begin gives a call a place.
func (f *front) begin(b link.Begin) {
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

// make decides a call that has a place, and has it made.
func (f *front) make(c *call) {
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
	if k.served == nil || !sensible(b) {
		return refuse(link.ReasonFailed, "the call makes no sense", "") // no honest clove-models sends it
	}
	if k.target, refusal = c.target(k.served, b); refusal != nil {
		return refusal
	}
	if refusal := k.allowed(); refusal != nil {
		return refusal
	}
	// Before the reservation: a call that waits holds nothing of the budget.
	waited := c.loads.wait(k)
	leave, err := c.admit(k.ctx, k, b.In+max(b.Out, 1)*b.N)
	waited()
	if err != nil {
		return &link.Refuse{Reason: link.ReasonBusy, Message: err.Error(), After: 1}
	}
	k.leave = leave
	return c.reserve(k)
}

// sensible reports whether an honest clove-models may have sent b. What goes on to other
// processes is short and plain.
func sensible(b link.Begin) bool {
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
	reservation, err := k.front.control.options.Ledger.Reserve(k.served.run, kernel.Spending{Service: service, Method: "model.call", What: what})
	if err == nil { // it was granted meanwhile
		_, _ = k.front.control.options.Ledger.Settle(k.served.run, service, reservation, nil) // else the end of the run settles it
		return refuse(link.ReasonBusy, "the grants have changed", "ask again")
	}
	return refusalOf(err)
}

// target chooses who answers.
func (c *Control) target(s *served, b link.Begin) (config.Target, *link.Refuse) {
	targets, err := c.options.Config().Resolve(b.Model, s.run.Owner.UID, s.groups)
	var unknown *config.UnknownModelError
	switch {
	case errors.As(err, &unknown):
		return config.Target{}, refuse(link.ReasonUnknown, err.Error(), "")
	case err != nil:
		return config.Target{}, refuse(link.ReasonNotGranted, err.Error(), "")
	}
	targets = slices.DeleteFunc(targets, func(t config.Target) bool { return !t.Provider.Speaks(b.Format.Family()) })
	if len(targets) == 0 {
		return config.Target{}, refuse(link.ReasonUnknown, "the model "+b.Model+" does not speak "+string(b.Format.Family()), "call it with a client of its own family")
	}
	t := c.health.choose(targets)
	// What a user may spend at one provider is not counted yet, and a limit that does not hold
	// would be worse than none.
	if limits := t.Provider.Budget(s.run.Owner.UID); len(limits) > 0 {
		return config.Target{}, refuse(link.ReasonFailed, "the budget of user "+strconv.FormatUint(uint64(s.run.Owner.UID), 10)+" at the provider "+t.Provider.Name+" cannot be enforced yet",
			"remove it from models.yaml, and use clove budget set")
	}
	if t.Context > 0 && b.In > t.Context {
		return config.Target{}, refuse(link.ReasonContext, "the request is longer than the context of "+t.Name, "")
	}
	return t, nil
}

// reserve takes the upper bound of a call from the budgets.
func (c *Control) reserve(k *call) *link.Refuse {
	in := int64(math.Ceil(float64(k.begin.In) * k.target.Factor))
	out, refusal := c.most(k, in)
	if refusal != nil {
		return refusal
	}
	k.reserved = budget.Amounts{budget.ModelCalls: 1, budget.TokensIn: in, budget.TokensOut: out * k.begin.N}
	if k.begin.Format == models.AnthropicCount { // it uses no tokens
		k.reserved = budget.Amounts{budget.ModelCalls: 1}
	} else if k.target.Price != nil {
		k.reserved[budget.CostMicros] = k.target.Price.Most(in, out*k.begin.N, k.begin.Tiers...)
	}
	var err error
	k.reservation, err = c.options.Ledger.Reserve(k.served.run, kernel.Spending{
		Service: service, Method: "model.call", What: k.what(k.begin.Needs...), Amounts: k.reserved})
	if err == nil {
		k.served.fly(1)
	}
	return refusalOf(err)
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

// most is the most output that one answer may have, in tokens: what the request says, else
// what is left of the budgets, else what the model can. 0: nothing bounds it.
func (c *Control) most(k *call, in int64) (int64, *link.Refuse) {
	left, refusal := c.left(k, in)
	if refusal != nil {
		return 0, refusal
	}
	switch most := k.target.MaxOutput; {
	case k.begin.Out > 0:
		return k.begin.Out, nil
	case left < math.MaxInt64 && (most == 0 || left < most):
		// Where nothing is left, Reserve refuses the least that an answer takes: what follows from
		// that is the budget's to say.
		k.begin.Out = max(left, 1)
		return k.begin.Out, nil
	default:
		k.begin.Out = most
		return most, nil
	}
}

// left is how many tokens of output the budgets have room for in each answer.
func (c *Control) left(k *call, in int64) (int64, *link.Refuse) {
	free := map[budget.Dimension]int64{}
	for _, d := range []budget.Dimension{budget.TokensOut, budget.Tokens, budget.CostMicros} {
		var err error
		if free[d], err = c.options.Ledger.Free(k.served.run, d); err != nil {
			return 0, refusalOf(err)
		}
	}
	left := free[budget.TokensOut]
	if free[budget.Tokens] < math.MaxInt64 {
		left = min(left, free[budget.Tokens]-in)
	}
	if money := free[budget.CostMicros]; money < math.MaxInt64 {
		if k.target.Price == nil {
			return 0, refuse(link.ReasonNoPrice, "no price of "+k.target.Name+" is known, and the run has a budget of money", "add one to /etc/clove/models.yaml")
		}
		left = min(left, affordable(k.target.Price, in, money, k.begin.Tiers))
	}
	if left == math.MaxInt64 {
		return left, nil
	}
	return left / k.begin.N, nil
}

// affordable is the largest output that money pays for beside the input, in tokens.
func affordable(p *config.Price, in, money int64, tiers []string) int64 {
	low, high := int64(0), int64(maxTokens) // low is paid for, or nothing is
	if p.Most(in, high, tiers...) <= money {
		return math.MaxInt64
	}
	for high-low > 1 {
		if middle := (low + high) / 2; p.Most(in, middle, tiers...) <= money {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// launch has a call made: clove-upstream and clove-models each get one side of a stream.
func (c *Control) launch(k *call) *link.Refuse {
	failed := func(err error) *link.Refuse {
		entered := k.number != 0
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
	defer packet.CloseAll([]*os.File{near, far})
	files, err := c.copied(k, far)
	if err != nil {
		return failed(err)
	}
	defer packet.CloseAll(files[1:])
	c.enter(k, u)
	err = u.conn.Send(link.ToUpstream{Call: &link.Call{Number: k.number, Provider: k.target.Provider.Name, Format: k.begin.Format, Stream: k.begin.Stream,
		In: k.reserved[budget.TokensIn], MostOut: k.mostOut(), Betas: k.begin.Betas}}, files...)
	if err != nil {
		return failed(errors.New("the provider's side is gone"))
	}
	_ = k.front.conn.Send(link.ToFront{Go: &link.Go{Number: k.begin.Number, Model: k.target.Model, Out: k.begin.Out, Granted: k.granted}}, near) // a process that is gone reads nothing: the stream ends
	return nil
}

// mostOut is when clove-upstream cuts an answer off: its estimate of tokens is rough, so the
// bound is twice the reservation.
func (k *call) mostOut() int64 {
	if most := k.reserved[budget.TokensOut]; most > 0 {
		return 2*most + 1000
	}
	return 0
}

// stream makes the two sides over which a call's body and answer pass.
func stream() (near, far *os.File, err error) {
	return passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
}
