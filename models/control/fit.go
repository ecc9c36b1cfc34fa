package control

import (
	"cmp"
	"errors"
	"math"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// enough is how much output a call waits for that has no maximum, or a larger one than is left,
// in tokens of each answer, while other calls hold what it could have: an answer of a few tokens
// helps nobody. One that names more is refused where less is left.
const enough = 1024

// needed is the maximum of output of a call that must have one, where nothing else gives it: all
// models of Anthropic's since 2024 can answer as much, in tokens.
const needed = 8192

// maxTokens bounds what a request may say of tokens: above every model's, and sums do not
// overflow.
const maxTokens = 1 << 40

var (
	// errHeld says that a call fits once other calls have settled.
	errHeld = errors.New("other calls hold what is left of the budget")
	// errNoPrice says that what a call costs is limited, and not known.
	errNoPrice = errors.New("no price is known")
)

// demand is what a call wants of a target.
type demand struct {
	begin   link.Begin
	target  config.Target
	learned *learned // by the run's calls before; nil: nothing
	out     int64    // the most that each answer may have, tokens; 0: nothing bounds it
}

// what is what a grant must cover: the call of the model, with the first thing that it needs
// beside it.
func (w *demand) what(needs ...models.Need) string {
	if len(needs) == 0 {
		return "model:" + w.target.Name
	}
	return "model:" + w.target.Name + ":" + string(needs[0])
}

// ceiling is what an owner may spend at the provider.
func (w *demand) ceiling(uid uint32) *ledger.Ceiling {
	return &ledger.Ceiling{Account: budget.ProviderKey(uid, w.target.Provider.Name), Limits: w.target.Provider.Budget(uid)}
}

// fit chooses what is reserved for a call, its upper bound, and sets out. others are how
// many calls of the run wait beside it: one without a maximum, or with a larger one than is
// left, leaves them their shares.
//
// A call that would not fit even if nothing were held is given its least, so that the kernel
// refuses that.
func (w *demand) fit(left budget.Left, others int) (budget.Amounts, error) {
	if w.begin.Format == models.AnthropicCount { // it uses no tokens
		return w.held(budget.Amounts{budget.ModelCalls: 1}, left)
	}
	if _, limited := left.Unheld[budget.CostMicros]; limited && w.target.Price == nil {
		return nil, errNoPrice
	}
	w.out = w.least()
	if least := w.bound(w.out); !least.Fits(left.Unheld) {
		return least, nil
	}
	w.out = w.begin.Out
	if w.out == 0 || !w.bound(w.out).Fits(left.Unheld) {
		var err error
		if w.out, err = w.most(left, others); err != nil {
			return nil, err
		}
	}
	return w.held(w.bound(w.out), left)
}

// held refuses for the moment what only other calls are in the way of.
func (w *demand) held(amounts budget.Amounts, left budget.Left) (budget.Amounts, error) {
	if !amounts.Fits(left.Free) && amounts.Fits(left.Unheld) {
		return nil, errHeld
	}
	return amounts, nil
}

// least is the smallest maximum of output that a call is made with, in tokens.
func (w *demand) least() int64 {
	if w.begin.Out == 0 {
		return max(w.begin.Least, 1)
	}
	return min(w.begin.Out, max(w.begin.Least, enough))
}

// most is how much output each answer of a call may have whose maximum is missing or too large,
// in tokens: what it names, else what the model can, and what is left of the budgets. 0: nothing
// bounds it, and the format needs no maximum.
func (w *demand) most(left budget.Left, others int) (int64, error) {
	free, unheld := w.room(left.Free), w.room(left.Unheld)
	bound := cmp.Or(w.begin.Out, w.target.MaxOutput)
	if bound == 0 && w.begin.Format == models.AnthropicMessages {
		bound = max(needed, w.begin.Least)
	}
	if unheld == math.MaxInt64 {
		return bound, nil
	}
	top := unheld
	if bound > 0 {
		top = min(top, bound)
	}
	least := min(max(w.begin.Least, enough), top)
	if free < least {
		return 0, errHeld
	}
	return min(top, max(free/int64(others+1), least)), nil
}

// longer is what an answer may use that turns out longer than was reserved for it: twice as
// much and a little, or what is left.
func (w *demand) longer(left budget.Left) (budget.Amounts, error) {
	out := min(2*w.out+enough, w.room(left.Free))
	if out <= w.out {
		return nil, errHeld
	}
	return w.bound(out), nil
}

// heldBytes is how many tokens of output there is room for in each answer, beside the input;
// math.MaxInt64: nothing limits it.
func (w *demand) room(left budget.Amounts) int64 {
	in, room := w.input(), left.Of(budget.TokensOut)
	if tokens := left.Of(budget.Tokens); tokens < math.MaxInt64 {
		room = min(room, tokens-in)
	}
	if money := left.Of(budget.CostMicros); money < math.MaxInt64 {
		room = min(room, affordable(w.target.Price, in, money, w.begin.Tiers))
	}
	if room == math.MaxInt64 {
		return room
	}
	return room / w.begin.N
}

// input is the estimate of the input, in tokens.
func (w *demand) input() int64 {
	return max(int64(math.Ceil(float64(w.begin.In)*w.target.Factor)), w.learned.raised(w.target, w.begin.In))
}

// bound is the most that a call can use with so much output in each answer.
func (w *demand) bound(out int64) budget.Amounts { return w.boundOf(w.input(), out) }

// boundOf is bound for so much input.
func (w *demand) boundOf(in, out int64) budget.Amounts {
	out *= w.begin.N
	amounts := budget.Amounts{budget.ModelCalls: 1, budget.TokensIn: in, budget.TokensOut: out}
	if w.target.Price != nil {
		amounts[budget.CostMicros] = w.target.Price.Most(in, out, w.begin.Tiers...)
	}
	return amounts
}

// ahead is what the next call of the run may want: as this one, with twice the input, because
// a conversation grows.
func (w *demand) ahead() budget.Amounts {
	if w.begin.Format == models.AnthropicCount {
		return nil
	}
	return w.boundOf(2*w.input(), w.out)
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
