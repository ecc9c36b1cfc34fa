package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Bounds of what one principal's checks and refusals about one run write: an agent can have 10 000 calls a
// second refused. What is beyond them is counted, and one record a second has the numbers.
const (
	floodBurst     = 100 // entries at once
	floodPerSecond = 10  // afterwards
	floodSums      = 16  // numbers of one record; what is beyond them has one number
	floodReport    = time.Second
	floodsMost     = 1024 // principals that are remembered; those that have called least lately go
)

// gapFlood is the code of a record that stands for entries which were left out. Count is
// their number, What says how many were of which kind.
const gapFlood = "flood"

// flood is how much one principal may write, and what was left out.
type flood struct {
	*rate.Limiter
	first Entry  // of those that were left out
	count uint64 // of them; the sum of sums
	sums  map[string]uint64
}

// floodOf is that of an entry's principal. What happens without one is not bounded: it comes
// from clove itself. What users on the host change is not bounded either: each change has its
// record. l.mu is held.
func (l *Log) floodOf(e Entry) *flood {
	if e.Principal == "" || e.Kind != KindDecision && e.Verdict == VerdictAllow {
		return nil
	}
	key := e.Principal + " " + string(e.Run) // a service acts for many runs
	f := l.floods[key]
	if f == nil {
		f = &flood{Limiter: rate.NewLimiter(rate.Limit(l.options.FloodPerSecond), l.options.FloodBurst)}
		l.floods[key] = f
		if len(l.floods) > floodsMost {
			maps.DeleteFunc(l.floods, func(_ string, old *flood) bool { return old != f && old.full() })
		}
	}
	return f
}

// full reports whether nothing has to be remembered.
func (f *flood) full() bool { return f.count == 0 && f.Tokens() >= float64(f.Burst()) }

// leaveOut counts an entry instead of writing it. l.mu is held.
func (l *Log) leaveOut(f *flood, e Entry) error {
	if err := l.miss(1); err != nil {
		return err
	}
	l.leftOut++
	if f.count == 0 {
		f.first, f.sums = e, map[string]uint64{}
		time.AfterFunc(floodReport, func() { l.reportFlood(f) })
	}
	f.count++
	kind := strings.Join(slices.DeleteFunc([]string{e.Verdict, e.Method, e.Code}, func(word string) bool { return word == "" }), " ")
	if _, known := f.sums[kind]; !known && len(f.sums) >= floodSums {
		kind = "others"
	}
	f.sums[kind]++
	return nil
}

// reportFlood writes what was left out of one principal's entries. The writer counts it as
// unwritten until it is durable.
func (l *Log) reportFlood(f *flood) {
	l.mu.Lock()
	if !l.closed { // Close has reported it
		l.endFlood(f)
	}
	l.mu.Unlock()
	signal(l.lazy)
}

// endFlood queues the record of a flood. l.mu is held.
func (l *Log) endFlood(f *flood) {
	if f.count == 0 {
		return
	}
	e := f.entry()
	l.leftOut -= f.count
	f.count, f.sums = 0, nil
	l.enqueued++
	l.orders = append(l.orders, order{entries: stamped([]Entry{e})})
}

func (f *flood) entry() Entry {
	var sums []string
	kinds := slices.SortedFunc(maps.Keys(f.sums), func(a, b string) int { return cmp.Or(cmp.Compare(f.sums[b], f.sums[a]), cmp.Compare(a, b)) })
	for _, kind := range kinds {
		sums = append(sums, fmt.Sprintf("%d %s", f.sums[kind], kind))
	}
	return Entry{Kind: KindGap, Code: gapFlood, Count: f.count, What: strings.Join(sums, ", "),
		Owner: f.first.Owner, Namespace: f.first.Namespace, Agent: f.first.Agent, Run: f.first.Run, Principal: f.first.Principal}
}
