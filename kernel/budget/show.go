package budget

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/docker/go-units"
)

// Title is the name of d on the command line: cost for CostMicros.
func (d Dimension) Title() string {
	if d == CostMicros {
		return cost
	}
	return string(d)
}

// Show is an amount of d for people, in the unit that users write: dollars, times, sizes to four
// digits, and numbers. ParseAmount reads it.
func (d Dimension) Show(amount int64) string {
	switch d {
	case WriteBytes, NetBytes:
		return units.BytesSize(float64(amount))
	case CPU, Wall:
		return (time.Duration(min(amount, MaxAmount/1000)) * time.Millisecond).String()
	}
	return format(d, amount)
}

// Exact is Show where that says the whole amount, and the number otherwise. ParseAmount reads it.
func (d Dimension) Exact(amount int64) string {
	text := d.Show(amount)
	if read, err := ParseAmount(d, text); err != nil || read != amount {
		text = strconv.FormatInt(amount, 10)
	}
	return text
}

// Words are amounts of d with what they are of: "800 of 1000 tokens", "0.4usd of 0.5usd",
// "1m20s of 1m30s of cpu_ms".
func (d Dimension) Words(amounts ...int64) string {
	var all []string
	for _, amount := range amounts {
		all = append(all, d.Show(amount))
	}
	text := strings.Join(all, " of ")
	switch d {
	case CostMicros:
		return text
	case WriteBytes, NetBytes, CPU, Wall:
		return text + " of " + string(d)
	}
	return text + " " + string(d)
}

// More is what Larger adds, as clove budget raise takes it.
func More(d Dimension, granted, used, wanted int64) string {
	return d.Title() + "=" + d.Show(larger(granted, used, wanted)-granted)
}

func larger(granted, used, wanted int64) int64 {
	return min(cmp.Or(max(Sum(granted, granted), Sum(used, wanted)), 1), MaxAmount)
}

// Larger is the budget that a run which a limit of granted has stopped may be given next, as
// --budget takes it: twice as much, or what it wants beside what it has used.
func Larger(d Dimension, granted, used, wanted int64, p Period) string {
	text := d.Title() + "=" + d.Show(larger(granted, used, wanted))
	if p != "" {
		text += "/" + string(p)
	}
	return text
}
