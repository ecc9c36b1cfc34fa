package budget

import (
	"math"
	"time"
)

// Left is how much can be reserved of the dimensions that are limited. An amount is negative
// where more was used than was granted.
type Left struct {
	Free   Amounts // now
	Unheld Amounts // once all that is reserved was given back unused
}

// Left returns what is left in all accounts of the chain at now.
func (c Chain) Left(now time.Time) Left {
	left := Left{Free: Amounts{}, Unheld: Amounts{}}
	for _, a := range c {
		for d := range a.Lines {
			if l := a.Lines[d].At(now); !l.Unlimited {
				left.Free[d] = min(left.Free.Of(d), l.Free())
				left.Unheld[d] = min(left.Unheld.Of(d), l.Granted-l.Used)
			}
		}
	}
	return left
}

// Of returns the amount of d that is left, of a Left's amounts; math.MaxInt64 where nothing
// limits d.
func (a Amounts) Of(d Dimension) int64 {
	if amount, limited := a[d]; limited {
		return amount
	}
	return math.MaxInt64
}

// Fits reports whether a can be reserved of what is left.
func (a Amounts) Fits(left Amounts) bool {
	for d, amount := range a.whole() {
		if amount > left.Of(d) {
			return false
		}
	}
	return true
}

// Add adds other amounts to a.
func (a Amounts) Add(other Amounts) {
	for d, amount := range other {
		a[d] = Sum(a[d], amount)
	}
}

// Times returns a multiple of a.
func (a Amounts) Times(n int64) Amounts {
	all := Amounts{}
	for d, amount := range a {
		all[d] = amount * n
	}
	return all
}

// Without has the chain look as if r were given back. It is for looking only.
func (c Chain) Without(r Reservation) {
	for _, a := range c {
		for d, amount := range r.Held[a.Key] {
			if l := a.Lines[d]; l != nil {
				l.Reserved = max(0, l.Reserved-amount)
			}
		}
	}
}

// HeldBy reports whether r is held as if it were reserved in the chain now: by these accounts,
// and in every line of theirs that it concerns.
func (r Reservation) HeldBy(c Chain) bool {
	for _, a := range c {
		held, named := r.Held[a.Key]
		for d := range r.Amounts {
			if _, has := held[d]; has != (a.Lines[d] != nil) {
				return false
			}
		}
		if !named {
			return false
		}
	}
	return len(c) == len(r.Held)
}
