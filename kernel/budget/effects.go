package budget

import "fmt"

// Effects are what a change of a chain means for the run.
type Effects struct {
	Warned []Notice `json:"warned,omitempty"` // lines that reached WarnAt
	Ended  []Notice `json:"ended,omitempty"`  // lines that exceeded Granted, and of accounts above those that have nothing left of what agents charge
	Over   Amounts  `json:"over,omitempty"`   // settled beyond what was reserved
	Used   Amounts  `json:"used,omitempty"`   // what was added, in each account that has the dimension
}

// Notice is a line as it was when it reached its warning or its end.
type Notice struct {
	Account   Key       `json:"account"`
	Dimension Dimension `json:"dimension"`
	Granted   int64     `json:"granted"`
	WarnAt    int64     `json:"warn_at,omitempty"`
	Used      int64     `json:"used"`
	Reserved  int64     `json:"reserved,omitempty"`
	Peak      int64     `json:"peak"`
	Period    Period    `json:"period,omitempty"`
	AtEnd     AtEnd     `json:"at_end"`
}

// Exceeded is the error of a reservation that does not fit. The account's AtEnd says what
// happens to the run.
type Exceeded struct {
	Notice
	Wanted int64
}

func (e *Exceeded) Error() string {
	d := e.Dimension
	return fmt.Sprintf("%s: %s wanted, %s of %s free in %s", d.Title(), d.Show(e.Wanted), d.Show(max(0, e.Granted-e.Used-e.Reserved)), d.Show(e.Granted), e.Account)
}

func notice(a *Account, d Dimension) Notice {
	l := a.Lines[d]
	return Notice{Account: a.Key, Dimension: d, Granted: l.Granted, WarnAt: l.WarnAt, Used: l.Used, Reserved: l.Reserved,
		Peak: l.Peak, Period: l.Period, AtEnd: a.AtEnd.For(d)}
}

// charge adds amount to a line, and notes what that reaches for the first time.
func (e *Effects) charge(a *Account, d Dimension, amount int64) {
	l := a.Lines[d]
	l.Used = Sum(l.Used, amount)
	l.Peak = max(l.Peak, l.Used)
	if l.Unlimited {
		return
	}
	if !l.Warned && l.WarnAt > 0 && l.Used >= l.WarnAt {
		l.Warned = true
		e.Warned = append(e.Warned, notice(a, d))
	}
	if !l.Breached && l.Used > l.Granted {
		l.Breached = true
		e.Ended = append(e.Ended, notice(a, d))
	}
}
