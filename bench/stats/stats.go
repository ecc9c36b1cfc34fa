package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"
)

// Confidence is that of every interval.
const Confidence = 0.95

// Interval is where a value probably lies.
type Interval struct{ Low, High float64 }

// Holds reports whether a value is inside.
func (i Interval) Holds(x float64) bool { return i.Low <= x && x <= i.High }

// normal returns the quantile of the standard normal distribution with Confidence inside.
func normal() float64 { return mathext.NormalQuantile(1 - (1-Confidence)/2) }

// Wilson is the score interval of a rate (E. B. Wilson, 1927). It stays within 0 and 1, and
// is useful for few attempts and for rates of 0 and 1. Of no attempts, nothing is known.
func Wilson(hits, of int) Interval {
	if of == 0 {
		return Interval{0, 1}
	}
	n, z := float64(of), normal()
	p := float64(hits) / n
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	// Rounding may leave a bound that is exactly 0 or 1 a little off.
	low, high := max(0, middle-half), min(1, middle+half)
	if hits == 0 {
		low = 0
	}
	if hits == of {
		high = 1
	}
	return Interval{low, high}
}

// Quantile is the empirical quantile: the smallest value that at least this part of the
// values does not exceed; NaN of no values.
func Quantile(p float64, values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return quantile(p, slices.Sorted(slices.Values(values)))
}

func quantile(p float64, sorted []float64) float64 {
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

// Mean is the arithmetic mean; NaN of no values.
func Mean(values []float64) float64 { return floats.Sum(values) / float64(len(values)) }

// resamples of a bootstrap.
const resamples = 10_000

// Bootstrap is the percentile interval of the mean of groups of values, each of which is
// drawn as a whole: values of one group, such as the seeds of one task, are not independent.
// The same values give the same interval.
func Bootstrap(groups [][]float64) Interval {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g []float64) bool { return len(g) == 0 })
	if len(groups) == 0 {
		return Interval{math.NaN(), math.NaN()}
	}
	draw := rand.New(rand.NewPCG(1, 2))
	means := make([]float64, resamples)
	for i := range means {
		sum, n := 0.0, 0
		for range groups {
			g := groups[draw.IntN(len(groups))]
			sum += floats.Sum(g)
			n += len(g)
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	tail := (1 - Confidence) / 2
	return Interval{quantile(tail, means), quantile(1-tail, means)}
}
