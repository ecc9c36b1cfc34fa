package learn

import (
	"fmt"

	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// MarginPercent is what a limit has above the peak that was measured.
const MarginPercent = 50

// limit is one that is learned.
type limit struct {
	*settings.Learn
	name  string // of the setting
	key   string // of the document
	peak  int64  // -1: not known, the runs' own limit stays
	floor int64
	given int64 // of the runs; 0: none
}

// limits are what is learned, of each row that says how.
func (o Observation) limits() (all []limit) {
	for i := range settings.All() {
		s := &settings.All()[i]
		if s.Learn == nil {
			continue
		}
		l := limit{Learn: s.Learn, name: s.Name(), key: s.Key}
		given := o.Given.Text(l.name)
		if s.Learn.Entry != "" {
			l.key += "." + s.Learn.Entry
			given, _ = settings.Named(o.Given.Values[l.name], s.Learn.Entry)
		}
		l.peak, l.floor = s.Learn.Seen(o.Observed)
		l.given = s.Learn.Unit.Read(given)
		all = append(all, l)
	}
	return all
}

// value is what the document says, and why. A run never learns more than it was given.
func (l limit) value() (n int64, why string) {
	if l.peak < 0 {
		return l.given, "as the runs had; the peak is not known"
	}
	n = l.Round(max(l.floor, l.peak+l.peak*MarginPercent/100))
	why = fmt.Sprintf("the peak was %s, and %d %% more", l.Unit.Say(l.peak), MarginPercent)
	switch {
	case l.given > 0 && n >= l.given:
		return l.given, fmt.Sprintf("as the runs had; the peak was %s", l.Unit.Say(l.peak))
	case l.peak+l.peak*MarginPercent/100 < l.floor:
		why = fmt.Sprintf("the peak was %s; this is the least that is learned", l.Unit.Say(l.peak))
	}
	return n, why
}

// set writes a value into the document.
func (l limit) set(d *policies.Document, n int64) {
	text := l.Unit.Write(n)
	if l.Entry == "" {
		d.Set(l.name, text)
		return
	}
	entry := settings.Values{l.name: {l.Entry + "=" + text}}
	d.SetList(l.name, entry.Extend(d.Values)[l.name])
}
