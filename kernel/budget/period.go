package budget

import "time"

// Period is how long a limit counts before it begins anew, in calendar units of UTC. The
// zero value never begins anew.
type Period string

// The periods.
const (
	Hour  Period = "hour"
	Day   Period = "day"
	Month Period = "month"
)

// Start returns when the period that contains now began.
func (p Period) Start(now time.Time) time.Time {
	now = now.UTC()
	year, month, day := now.Date()
	switch p {
	case Hour:
		return time.Date(year, month, day, now.Hour(), 0, 0, 0, time.UTC)
	case Day:
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	case Month:
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Time{}
}

// End returns when the period that began at start ends; the zero time where it never does.
func (p Period) End(start time.Time) time.Time {
	switch p {
	case Hour:
		return start.Add(time.Hour)
	case Day:
		return start.AddDate(0, 0, 1)
	case Month:
		return start.AddDate(0, 1, 0)
	}
	return time.Time{}
}

func (p Period) validate() error {
	switch p {
	case "", Hour, Day, Month:
		return nil
	}
	return invalid("use hour, day or month", "%.64q is not a period", string(p))
}

// AtEnd is what happens to a run when more is used than was granted, or when it wants to
// reserve more than is left beside what was used (Chain.Stop).
type AtEnd string

// The choices. The zero value is End.
const (
	End    AtEnd = "end"    // the run ends, with the status "budget"
	Pause  AtEnd = "pause"  // the run is frozen until the limit is raised or its period ends
	Refuse AtEnd = "refuse" // the call is refused; a metered dimension cannot be refused, and ends the run
)

// ParseAtEnd parses the value of --at-end.
func ParseAtEnd(text string) (AtEnd, error) {
	switch at := AtEnd(text); at {
	case End, Pause, Refuse:
		return at, nil
	}
	return "", invalid("use end, pause or refuse", "%.64q is not what may happen at a budget's end", text)
}

// For returns what happens when the limit of d is reached.
func (a AtEnd) For(d Dimension) AtEnd {
	if a == "" || a == Refuse && d.Metered() {
		return End
	}
	return a
}
