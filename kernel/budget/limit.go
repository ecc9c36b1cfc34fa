package budget

import "strings"

// Limit is what someone allows of one dimension.
type Limit struct {
	Dimension Dimension `json:"dimension"`
	Granted   int64     `json:"granted"`
	WarnAt    int64     `json:"warn_at,omitempty"` // used, at which a warning is due; 0: none
	Period    Period    `json:"period,omitempty"`
}

// ParseLimit parses the value of --budget, DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT]:
//
//	tokens=20k   cost=0.50usd/day   write_bytes=1G,warn=900M   reviews=10/day,warn=8
//
// Without warn it warns at four fifths. Without a period the limit is for the whole life
// of what it is set for.
func ParseLimit(text string) (Limit, error) {
	name, value, found := strings.Cut(text, "=")
	if !found {
		return Limit{}, invalid("write DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT], for example reviews=10/day,warn=8", "%.128q is not a budget", text)
	}
	dimension, err := ParseDimension(name)
	if err != nil {
		return Limit{}, err
	}
	l := Limit{Dimension: dimension}
	value, warn, warns := strings.Cut(value, ",warn=")
	value, period, periodic := strings.Cut(value, "/")
	l.Period = Period(period)
	if periodic && period == "" {
		l.Period = " " // refused below
	}
	if l.Granted, err = namedAmount(name, l.Dimension, value); err != nil {
		return Limit{}, err
	}
	if l.WarnAt = warning(l.Granted); warns {
		if l.WarnAt, err = namedAmount(name, l.Dimension, warn); err != nil {
			return Limit{}, err
		}
	}
	return l, l.Validate()
}

// warning is four fifths of granted, rounded up.
func warning(granted int64) int64 { return granted - granted/5 }

// Validate checks a limit that did not come from ParseLimit.
func (l Limit) Validate() error {
	if err := (Amounts{l.Dimension: l.Granted}).Validate(); err != nil {
		return err
	}
	if l.WarnAt < 0 || l.WarnAt > l.Granted {
		return invalid("", "%s: a warning at %d would come after the end at %d", l.Dimension, l.WarnAt, l.Granted)
	}
	return l.Period.validate()
}

// String is a text that ParseLimit reads as l.
func (l Limit) String() string {
	name := string(l.Dimension)
	if l.Dimension == CostMicros {
		name = cost
	}
	text := name + "=" + format(l.Dimension, l.Granted)
	if l.Period != "" {
		text += "/" + string(l.Period)
	}
	if l.WarnAt != warning(l.Granted) {
		text += ",warn=" + format(l.Dimension, l.WarnAt)
	}
	return text
}
