package control

import (
	"errors"
	"math"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
)

// enough is how much output a call without a maximum waits for, in tokens of each answer,
// while other calls hold what it could have: an answer of a few tokens helps nobody.
const enough = 1024

var (
	// errHeld says that a call fits once other calls have settled.
	errHeld = errors.New("other calls hold what is left of the budget")
	// errNoPrice says that what a call costs is limited, and not known.
	errNoPrice = errors.New("no price is known")
)

// fit chooses what is reserved for a call, its upper bound, and sets k.out. others are how
// many calls of the run wait beside it: one without a maximum leaves them their shares.
//
// A call that would not fit even if nothing were held is given its least, so that the kernel
// refuses that.
func (k *call) fit(left budget.Left, others int) (budget.Amounts, error) {
	if k.begin.Format == models.AnthropicCount { // it uses no tokens
		return k.held(budget.Amounts{budget.ModelCalls: 1}, left)
	}
	if _, limited := left.Unheld[budget.CostMicros]; limited && k.target.Price == nil {
		return nil, errNoPrice
	}
	k.out = max(k.begin.Out, 1)
	if least := k.bound(k.out); !least.Fits(left.Unheld) {
		return least, nil
	}
	if k.begin.Out == 0 {
		var err error
		if k.out, err = k.most(left, others); err != nil {
			return nil, err
		}
	}
	return k.held(k.bound(k.out), left)
}

// held refuses for the moment what only other calls are in the way of.
func (k *call) held(amounts budget.Amounts, left budget.Left) (budget.Amounts, error) {
	if !amounts.Fits(left.Free) && amounts.Fits(left.Unheld) {
		return nil, errHeld
	}
	return amounts, nil
}

// most is how much output each answer of a call without a maximum may have, in tokens: what
// the model can, and what is left of the budgets. 0: nothing bounds it.
func (k *call) most(left budget.Left, others int) (int64, error) {
	free, unheld := k.room(left.Free), k.room(left.Unheld)
	if unheld == math.MaxInt64 {
		return k.target.MaxOutput, nil
	}
	top := unheld
	if k.target.MaxOutput > 0 {
		top = min(top, k.target.MaxOutput)
	}
	least := min(enough, top)
	if free < least {
		return 0, errHeld
	}
	return min(top, max(free/int64(others+1), least)), nil
}

// longer is what an answer may use that turns out longer than was reserved for it: twice as
// much and a little, or what is left.
func (k *call) longer(left budget.Left) (budget.Amounts, error) {
	out := min(2*k.out+enough, k.room(left.Free))
	if out <= k.out {
		return nil, errHeld
	}
	return k.bound(out), nil
}

// room is how many tokens of output there is room for in each answer, beside the input;
// math.MaxInt64: nothing limits it.
func (k *call) room(left budget.Amounts) int64 {
	in, room := k.input(), left.Of(budget.TokensOut)
	if tokens := left.Of(budget.Tokens); tokens < math.MaxInt64 {
		room = min(room, tokens-in)
	}
	if money := left.Of(budget.CostMicros); money < math.MaxInt64 {
		room = min(room, affordable(k.target.Price, in, money, k.begin.Tiers))
	}
	if room == math.MaxInt64 {
		return room
	}
	return room / k.begin.N
}

// input is the estimate of the input, in tokens.
func (k *call) input() int64 { return int64(math.Ceil(float64(k.begin.In) * k.target.Factor)) }

// bound is the most that a call can use with so much output in each answer.
func (k *call) bound(out int64) budget.Amounts { return k.boundOf(k.input(), out) }

// boundOf is bound for so much input.
func (k *call) boundOf(in, out int64) budget.Amounts {
	out *= k.begin.N
	amounts := budget.Amounts{budget.ModelCalls: 1, budget.TokensIn: in, budget.TokensOut: out}
	if k.target.Price != nil {
		amounts[budget.CostMicros] = k.target.Price.Most(in, out, k.begin.Tiers...)
	}
	return amounts
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
