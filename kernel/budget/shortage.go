package budget

import (
	"slices"
	"time"
)

// Shortage is a reservation that stopped its run: not even the settlement of all others
// would make room for it. It holds until the line changes in the run's favour.
type Shortage struct {
	Account     Key       `json:"account"`
	Dimension   Dimension `json:"dimension"`
	Wanted      int64     `json:"wanted"`
	Granted     int64     `json:"granted"` // this and the following are the line's, when it was refused
	Used        int64     `json:"used"`
	PeriodStart time.Time `json:"period_start,omitzero"`
}

// holds reports whether the line has not been raised, reset or begun anew since.
func (s Shortage) holds(l Line) bool {
	return !l.Unlimited && l.Granted == s.Granted && l.PeriodStart.Equal(s.PeriodStart) && l.Used >= s.Used
}

// Stop notes in the run's account that a reservation or a claim was refused, and reports whether
// the account's AtEnd follows from that. It does not where open reservations alone are in the
// way, because their settlement may make room, where AtEnd is Refuse, and where other runs have
// used what is missing: of an account above and a dimension that agents charge, a run is stopped
// only if the limit would be too small for what it used itself and wants.
func (c Chain) Stop(e *Exceeded) bool { return c.stop(e, c.ownUsed(e.Dimension)) }

// stop is Stop for a run that had used as much itself.
func (c Chain) stop(e *Exceeded, used int64) bool {
	i := slices.IndexFunc(c, func(a *Account) bool { return a.Key == e.Account })
	if e.AtEnd == Refuse || e.Wanted <= e.Granted-e.Used || i < 0 || !c[0].Key.ofRun() {
		return false
	}
	if e.Account.Claimed(e.Dimension, c[0].Key) && Sum(used, e.Wanted) <= e.Granted {
		return false
	}
	c[0].Short = &Shortage{Account: e.Account, Dimension: e.Dimension, Wanted: e.Wanted, Granted: e.Granted, Used: e.Used,
		PeriodStart: c[i].Lines[e.Dimension].PeriodStart}
	return true
}

// Short returns the shortage that stops the run at now; nil: none does.
func (c Chain) Short(now time.Time) *Shortage {
	if len(c) == 0 || c[0].Short == nil {
		return nil
	}
	s := c[0].Short
	for _, a := range c {
		if l := a.Lines[s.Dimension]; l != nil && a.Key == s.Account && s.holds(l.At(now)) && a.AtEnd.For(s.Dimension) != Refuse {
			return s
		}
	}
	return nil
}
