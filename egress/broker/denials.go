package broker

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// MaxDenials bounds the targets whose denials are counted separately. Otherwise an agent
// that scans a network could make the record arbitrarily large.
const MaxDenials = 1000

// OtherTargets is the Denial.Target of all targets beyond MaxDenials.
const OtherTargets = "(other targets)"

// Denial is one denied target, with the number of denials.
type Denial struct {
	Time   time.Time // of the first
	Kind   Kind
	Target string
	Rule   string // of the first
	Reason string // of the first, a sentence where there is one
	Hint   string // of the first
	Count  int64
}

// denials counts what was denied.
type denials struct {
	first func(Denial) // called once for each target, without the lock

	mu     sync.Mutex // guards the fields below
	byKey  map[denialKey]*Denial
	others *Denial // of targets beyond MaxDenials
	total  int64
}

type denialKey struct {
	kind   Kind
	target string
}

func newDenials(first func(Denial)) *denials {
	return &denials{first: first, byKey: map[denialKey]*Denial{}}
}

// add counts d. The first denial of a target is reported at once.
func (all *denials) add(d Decision) {
	if entry, isNew := all.count(d); isNew && all.first != nil {
		all.first(entry)
	}
}

// count adds d to its target, or beyond MaxDenials to OtherTargets. It returns a copy,
// which the caller may use without the lock.
func (all *denials) count(d Decision) (Denial, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	// 0 stands for one event.
	times := max(1, d.Count)
	all.total += times
	key := denialKey{d.Kind, d.Target()}
	if known := all.byKey[key]; known != nil {
		known.Count += times
		return *known, false
	}
	fresh := &Denial{Time: d.Time, Kind: d.Kind, Target: key.target, Rule: d.Rule, Reason: cmp.Or(d.Detail, d.Reason), Hint: d.Hint, Count: times}
	if len(all.byKey) < MaxDenials {
		all.byKey[key] = fresh
		return *fresh, true
	}
	if all.others != nil {
		all.others.Count += times
		return *all.others, false
	}
	fresh.Target, fresh.Rule, fresh.Reason, fresh.Hint = OtherTargets, "", "", ""
	all.others = fresh
	return *fresh, true
}

// list returns the denials ordered by their first time, OtherTargets last, and their total count.
func (all *denials) list() ([]Denial, int64) {
	all.mu.Lock()
	defer all.mu.Unlock()
	list := make([]Denial, 0, len(all.byKey)+1)
	for _, d := range all.byKey {
		list = append(list, *d)
	}
	slices.SortFunc(list, func(a, b Denial) int { return a.Time.Compare(b.Time) })
	if all.others != nil {
		list = append(list, *all.others)
	}
	return list, all.total
}
