package compare

import (
	"fmt"
	"math"
)

// Verdict says in a sentence which of two named sides is ahead, and whether the data tell them apart.
// The share of passed attempts decides; where it does not, the score does.
func Verdict(first, second string, all []Difference) string {
	if len(all) < 2 {
		return ""
	}
	passed, score := all[0], all[1] // as figures has them
	d, what := passed, "passed"
	if !passed.Distinct() && (score.Distinct() || passed.Mean == 0) {
		d, what = score, "scored"
	}
	one, other := d.Second, d.First
	ahead, behind := second, first
	if d.Mean < 0 {
		ahead, behind, one, other = first, second, d.First, d.Second
	}
	pairs := fmt.Sprintf(" (%s of %s).", count(d.Pairs, "pair"), count(d.Tasks, "task"))
	said := "it " + share(what, one, other, behind) + pairs
	switch {
	case d.Mean == 0:
		return first + " and " + second + " are level: both " + share(what, one, math.NaN(), "") + pairs
	case d.Distinct():
		return ahead + " is ahead, and the data tell the two apart: " + said
	case math.IsNaN(d.Interval.Low):
		return fmt.Sprintf("%s is ahead, but fewer than %d tasks are too few to tell: %s", ahead, tasksLeast, said)
	}
	return ahead + " is ahead, but the data cannot tell the two apart: " + said
}

// share says how often or how well; other is NaN where there is nothing to compare with.
func share(what string, one, other float64, behind string) string {
	write := func(x float64) string { return fmt.Sprintf("%.3g", x) }
	if what == "passed" {
		write = func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	}
	if math.IsNaN(other) {
		return what + " " + write(one)
	}
	return fmt.Sprintf("%s %s, and %s %s", what, write(one), behind, write(other))
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
