package budget

import (
	"fmt"
	"math"
	"time"

	"clove.run/clove/agent"
)

// Account is what may be spent, and what was, below one Key.
type Account struct {
	Key   Key                 `json:"-"`
	AtEnd AtEnd               `json:"at_end,omitempty"`
	Lines map[Dimension]*Line `json:"lines"`
	// Short is of a run's account: the last reservation that stopped the run.
	Short *Shortage `json:"short,omitempty"`
}

// Line is one dimension of an account, in the dimension's unit.
type Line struct {
	Granted   int64  `json:"granted"`
	Unlimited bool   `json:"unlimited,omitempty"` // no limit is set: use is counted only
	WarnAt    int64  `json:"warn_at,omitempty"`   // used, at which a warning is due; 0: none
	Setter    uint32 `json:"setter,omitempty"`    // the user who set the limit

	Reserved int64 `json:"reserved,omitempty"` // by open reservations
	Used     int64 `json:"used,omitempty"`     // in this period
	Assumed  int64 `json:"assumed,omitempty"`  // of Used: settled after a crash, as if all had been used
	Peak     int64 `json:"peak,omitempty"`     // the highest Used of all periods

	Warned   bool `json:"warned,omitempty"`   // in this period
	Breached bool `json:"breached,omitempty"` // Used exceeds Granted, and that was reported

	Period      Period    `json:"period,omitempty"`
	PeriodStart time.Time `json:"period_start,omitzero"` // of the last period that began

	// Metered is the last total of the counter that the run's start number Start had.
	Metered int64 `json:"metered,omitempty"`
	Start   int   `json:"start,omitempty"`
}

// Set sets a limit in the name of setter, or changes one. Amounts that were used or reserved
// before stay, so the new limit may be exceeded at once.
func (a *Account) Set(l Limit, setter uint32, now time.Time) (Effects, error) {
	if err := l.Validate(); err != nil {
		return Effects{}, err
	}
	line := a.Lines[l.Dimension]
	if line == nil && len(a.Lines) >= MaxDimensions {
		return Effects{}, invalid("", "%s has %d dimensions already", a.Key, MaxDimensions)
	}
	if line == nil {
		line = a.open(l.Dimension, Line{})
	}
	line.roll(now)
	if line.Period != l.Period {
		line.PeriodStart = l.Period.Start(now)
	}
	line.Granted, line.Unlimited, line.WarnAt, line.Period, line.Setter = l.Granted, false, l.WarnAt, l.Period, setter
	return a.review(l.Dimension), nil
}

// Follow makes limits the only ones of the account, in root's name: a configuration says them.
// Amounts that were used or reserved before stay.
func (a *Account) Follow(limits []Limit, now time.Time) error {
	for _, line := range a.Lines {
		line.Unlimited = true
	}
	for _, l := range limits {
		if _, err := a.Set(l, 0, now); err != nil {
			return err
		}
	}
	for _, line := range a.Lines {
		if line.Unlimited {
			line.Breached = false
		}
	}
	return nil
}

// Raise sets the limit of d higher. A warning at four fifths moves along.
func (a *Account) Raise(d Dimension, to int64, now time.Time) (Effects, error) {
	line, err := a.limited(d)
	if err != nil {
		return Effects{}, err
	}
	limit := Limit{Dimension: d, Granted: to, WarnAt: line.WarnAt, Period: line.Period}
	if line.WarnAt == warning(line.Granted) {
		limit.WarnAt = warning(to)
	}
	if to < line.Granted {
		return Effects{}, invalid("name the new limit, not what is added", "%s: %d is less than %d", d, to, line.Granted)
	}
	return a.Set(limit, line.Setter, now)
}

// Reset sets the use of d in this period to zero. Reservations stay, and so does the peak.
func (a *Account) Reset(d Dimension, now time.Time) error {
	line, err := a.limited(d)
	if err != nil {
		return err
	}
	line.roll(now)
	line.forget()
	return nil
}

// limited returns the line of d where it has a limit.
func (a *Account) limited(d Dimension) (*Line, error) {
	if line := a.Lines[d]; line != nil && !line.Unlimited {
		return line, nil
	}
	return nil, &agent.Error{Kind: agent.KindNotFound, Step: "budget", Message: fmt.Sprintf("%s has no limit of %s", a.Key, d), Hint: "clove budget show lists those that it has"}
}

// open enters a new line.
func (a *Account) open(d Dimension, l Line) *Line {
	if a.Lines == nil {
		a.Lines = map[Dimension]*Line{}
	}
	a.Lines[d] = &l
	return &l
}

// review reports what a changed limit means for what was used before.
func (a *Account) review(d Dimension) Effects {
	line := a.Lines[d]
	line.Warned = line.Warned && line.Used >= line.WarnAt
	line.Breached = line.Breached && line.Used > line.Granted
	var e Effects
	e.charge(a, d, 0)
	return e
}

// MayChange reports whether a user may raise, lower or reset the limit: root, and the user
// who set it.
func (l *Line) MayChange(uid uint32) bool { return uid == 0 || !l.Unlimited && uid == l.Setter }

// Free is what can be reserved: Granted less Used and Reserved. It is negative where a
// charge exceeded the limit.
func (l *Line) Free() int64 {
	granted := l.Granted
	if l.Unlimited {
		granted = math.MaxInt64
	}
	return granted - l.Used - l.Reserved // none is negative, so the least is above the lowest int64
}

// roll begins the period that contains now, unless a later one has begun.
func (l *Line) roll(now time.Time) {
	if start := l.Period.Start(now); start.After(l.PeriodStart) {
		l.PeriodStart = start
		l.forget()
	}
}

// At returns the line as it is at now: a period that is over counts no more, also where
// nothing has been used since.
func (l *Line) At(now time.Time) Line {
	at := *l
	at.roll(now)
	return at
}

func (l *Line) forget() { l.Used, l.Assumed, l.Warned, l.Breached = 0, 0, false, false }

// broken are the invariants of a line by itself.
var broken = []struct {
	is   func(*Line) bool
	text string
}{
	{func(l *Line) bool {
		return min(l.Granted, l.WarnAt, l.Reserved, l.Used, l.Assumed, l.Peak, l.Metered) < 0
	}, "an amount is negative"},
	{func(l *Line) bool { return l.Granted > MaxAmount || l.WarnAt > l.Granted }, "its limit is out of range"},
	{func(l *Line) bool { return l.Peak < l.Used }, "more is used than at the peak"},
	{func(l *Line) bool { return l.Assumed > l.Used }, "more is assumed than used"},
	{func(l *Line) bool { return l.Breached && l.Used <= l.Granted }, "it is exceeded, and it is not"},
	{func(l *Line) bool { return l.Period.validate() != nil }, "its period is none"},
	{func(l *Line) bool { return !l.PeriodStart.Equal(l.Period.Start(l.PeriodStart)) }, "its period began at no beginning"},
}

// Broken returns what is wrong with a line of d, in words; "" where it is sound.
func (l *Line) Broken(d Dimension) string {
	if d.Validate() != nil {
		return "it is not a dimension"
	}
	for _, b := range broken {
		if b.is(l) {
			return b.text
		}
	}
	return ""
}
