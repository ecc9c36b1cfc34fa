package budget

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"clove.run/clove/agent"
)

// Chain is the account of a run followed by those above it that exist, also those of the runs above
// it. A run's own account counts what is used also where it has no limit. The methods change the
// accounts, or return an error and change no amount in them.
type Chain []*Account

// Reservation is an upper bound that was taken from a chain and is not settled.
type Reservation struct {
	ID      string   `json:"id"`
	Run     agent.ID `json:"run"`
	Service string   `json:"service"` // the service that made it, and alone settles it
	Amounts Amounts  `json:"amounts"`
	// Begun says that the service may have begun: after a crash all is taken for used.
	Begun bool      `json:"begun,omitempty"`
	Made  time.Time `json:"made"`
	// Held is what each account's Reserved contains of it. It names every account of the
	// chain: the use in the end may be of other dimensions.
	Held map[Key]Amounts `json:"held"`
}

// Accounts returns the keys of the accounts that r was reserved in, as those of a chain: the
// run's own first.
func (r Reservation) Accounts() []Key {
	return slices.SortedFunc(maps.Keys(r.Held), func(a, b Key) int {
		return cmp.Or(cmp.Compare(r.place(a), r.place(b)), cmp.Compare(a, b))
	})
}

// place orders the accounts of r: its run's, those of other runs, and the rest.
func (r Reservation) place(k Key) int {
	run, ofRun := k.Run()
	switch {
	case ofRun && run == r.Run:
		return 0
	case ofRun:
		return 1
	}
	return 2
}

// Reserve takes r.Amounts from every account that has the dimension, and enters in r what
// it took. Where one has too little free, the error is an *Exceeded.
func (c Chain) Reserve(r *Reservation, now time.Time) error {
	amounts, err := c.take(r.Amounts, now)
	if err != nil {
		return err
	}
	if over := c.exceeded(amounts); over != nil {
		return over
	}
	r.Amounts, r.Made, r.Held = amounts, now.UTC(), map[Key]Amounts{}
	for _, a := range c {
		r.Held[a.Key] = Amounts{}
	}
	for d, amount := range amounts {
		for _, a := range c.with(d) {
			a.Lines[d].Reserved += amount
			r.Held[a.Key][d] = amount
		}
	}
	return nil
}

// exceeded returns a line that has too little free, or nil. One that has too little even
// without all open reservations comes first: that stops the run (Stop).
func (c Chain) exceeded(amounts Amounts) (over *Exceeded) {
	for _, d := range amounts.sorted() {
		for _, a := range c.with(d) {
			l := a.Lines[d]
			if amounts[d] <= l.Free() {
				continue
			}
			if final := amounts[d] > l.Granted-l.Used; over == nil || final {
				over = &Exceeded{Notice: notice(a, d), Wanted: amounts[d]}
				if final {
					return over
				}
			}
		}
	}
	return over
}

// Settle gives r back and adds what was used in fact, also where that is more: the excess
// is in Effects.Over. The chain must have every account that r.Held names.
func (c Chain) Settle(r Reservation, actual Amounts, now time.Time) (Effects, error) {
	actual, err := c.take(actual, now)
	if err == nil {
		err = c.Release(r)
	}
	if err != nil {
		return Effects{}, err
	}
	e := c.charge(actual)
	for d, amount := range actual {
		if over := amount - r.Amounts[d]; over > 0 {
			if e.Over == nil {
				e.Over = Amounts{}
			}
			e.Over[d] = over
		}
	}
	return e, nil
}

// Release gives r back.
func (c Chain) Release(r Reservation) error {
	for key, held := range r.Held {
		i := slices.IndexFunc(c, func(a *Account) bool { return a.Key == key })
		if i < 0 {
			return fmt.Errorf("reservation %s: no account %s", r.ID, key)
		}
		for d, amount := range held {
			if line := c[i].Lines[d]; line == nil || line.Reserved < amount {
				return fmt.Errorf("reservation %s: account %s holds less than %d of %s", r.ID, key, amount, d)
			}
		}
	}
	for _, a := range c {
		for d, amount := range r.Held[a.Key] {
			a.Lines[d].Reserved -= amount
		}
	}
	return nil
}

// Recover settles r after its service died: as released where it had not begun, and otherwise
// in full, which the lines show as assumed.
func (c Chain) Recover(r Reservation, now time.Time) (Effects, error) {
	if !r.Begun {
		return Effects{}, c.Release(r)
	}
	e, err := c.Settle(r, r.Amounts, now)
	if err != nil {
		return e, err
	}
	for d, amount := range r.Amounts {
		for _, a := range c.with(d) {
			a.Lines[d].Assumed = Sum(a.Lines[d].Assumed, amount)
		}
	}
	return e, nil
}

// Charge adds what has happened, also where it exceeds a limit.
func (c Chain) Charge(amounts Amounts, now time.Time) (Effects, error) {
	amounts, err := c.take(amounts, now)
	if err != nil {
		return Effects{}, err
	}
	return c.charge(amounts), nil
}

// Reading is what a counter of the Linux kernel shows for a run. The counters begin at
// zero with each start of the run; starts are numbered upwards.
type Reading struct {
	Dimension Dimension
	Start     int
	Total     int64
}

// Meter charges by how much a counter has grown since the last reading. A reading that is
// repeated, late or of an earlier start charges nothing. The chain begins with the run's
// account, which remembers the last reading.
func (c Chain) Meter(r Reading, now time.Time) (Effects, error) {
	if len(c) == 0 || !c[0].Key.ofRun() {
		return Effects{}, fmt.Errorf("%s: no account of a run to meter in", r.Dimension)
	}
	if _, err := c.take(Amounts{r.Dimension: r.Total}, now); err != nil {
		return Effects{}, err
	}
	line := c[0].Lines[r.Dimension]
	if line == nil { // nothing was counted yet
		return Effects{}, nil
	}
	if r.Start > line.Start {
		line.Start, line.Metered = r.Start, 0
	}
	grown := r.Total - line.Metered
	if r.Start < line.Start || grown <= 0 {
		return Effects{}, nil
	}
	line.Metered = r.Total
	return c.charge(Amounts{r.Dimension: grown}), nil
}

// charge adds amounts to every account that has the dimension.
func (c Chain) charge(amounts Amounts) (e Effects) {
	e.Used = amounts
	for _, d := range amounts.sorted() {
		used := c.ownUsed(d)
		for _, a := range c.with(d) {
			c.add(&e, a, d, amounts[d], amounts[d], used)
		}
	}
	return e
}

// take validates amounts and prepares the lines that they concern: a period that is over
// ends, and the run's account gets a line to count in. It returns the whole amounts.
func (c Chain) take(amounts Amounts, now time.Time) (Amounts, error) {
	if err := amounts.Validate(); err != nil {
		return nil, err
	}
	amounts = amounts.whole()
	for _, d := range amounts.sorted() {
		if len(c.with(d)) == 0 && (d.Own() || len(c) == 0 || !c[0].Key.ofRun()) {
			return nil, &agent.Error{Kind: agent.KindNotFound, Step: "budget", Message: fmt.Sprintf("there is no budget of %s", d), Hint: "set one with --budget " + string(d) + "=AMOUNT"}
		}
	}
	for d := range amounts {
		if c[0].Key.ofRun() && c[0].Lines[d] == nil {
			c[0].open(d, Line{Unlimited: true})
		}
		for _, a := range c.with(d) {
			a.Lines[d].roll(now)
		}
	}
	if len(c) > 0 && c.Short(now) == nil {
		c[0].Short = nil
	}
	return amounts, nil
}

// with returns the accounts that have the dimension.
func (c Chain) with(d Dimension) (found Chain) {
	for _, a := range c {
		if a.Lines[d] != nil {
			found = append(found, a)
		}
	}
	return found
}
