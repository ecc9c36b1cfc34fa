package stats

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

// The intervals are those of R. G. Newcombe, Two-sided confidence intervals for the single
// proportion, Statistics in Medicine 17 (1998), table I, method 3.
func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hits, of  int
		low, high float64
	}{{81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 20, 0, 0.1611}, {1, 29, 0.0061, 0.1718}, {20, 20, 0.8389, 1}, {0, 0, 0, 1}} {
		got := Wilson(c.hits, c.of)
		if math.Abs(got.Low-c.low) > 5e-5 || math.Abs(got.High-c.high) > 5e-5 {
			t.Errorf("%d of %d: %+v, want %v to %v", c.hits, c.of, got, c.low, c.high)
		}
	}
}

func TestTheIntervalHoldsTheRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5000).Draw(t, "of")
		hits := rapid.IntRange(0, n).Draw(t, "hits")
		i := Wilson(hits, n)
		if !i.Holds(float64(hits)/float64(n)) || i.Low < 0 || i.High > 1 {
			t.Fatalf("%d of %d: %+v", hits, n, i)
		}
	})
}

func TestQuantilesAreGonums(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 200).Draw(t, "values")
		p := rapid.Float64Range(0.01, 0.99).Draw(t, "p")
		sorted := slices.Sorted(slices.Values(values))
		got, want := Quantile(p, values), stat.Quantile(p, stat.Empirical, sorted, nil)
		// Where p is on the border between two values, rounding decides.
		at := slices.Index(sorted, want)
		if got != want && got != sorted[min(at+1, len(sorted)-1)] && got != sorted[max(at-1, 0)] {
			t.Fatalf("%v, want %v", got, want)
		}
	})
	if !math.IsNaN(Quantile(0.5, nil)) || !math.IsNaN(Mean(nil)) {
		t.Error("something is known of no values")
	}
}

// For many independent values the interval is that of the normal distribution.
func TestBootstrapAgreesWithTheNormalInterval(t *testing.T) {
	t.Parallel()
	var groups [][]float64
	var all []float64
	for i := range 400 {
		x := distuv.UnitNormal.Quantile((float64(i) + 0.5) / 400)
		groups, all = append(groups, []float64{x}), append(all, x)
	}
	half := 1.959964 * stat.StdDev(all, nil) / math.Sqrt(400)
	if i := Bootstrap(groups); math.Abs(i.Low+half) > 0.01 || math.Abs(i.High-half) > 0.01 {
		t.Errorf("%+v, want ± %v", i, half)
	}
}

// Values of one group are drawn together: ten copies of each value say no more than one.
func TestBootstrapDrawsGroups(t *testing.T) {
	t.Parallel()
	one, ten := [][]float64{{0}, {1}, {0}, {1}, {1}}, [][]float64{}
	for _, g := range one {
		ten = append(ten, slices.Repeat(g, 10))
	}
	if a, b := Bootstrap(one), Bootstrap(ten); a != b {
		t.Errorf("%+v with one, %+v with ten", a, b)
	}
	if i := Bootstrap([][]float64{{}, nil}); !math.IsNaN(i.Low) {
		t.Errorf("%+v of nothing", i)
	}
}
