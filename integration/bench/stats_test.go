package main

import "testing"

func TestQuantileIsAValueThatWasMeasured(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for _, c := range []struct {
		name   string
		values []float64
		q      float64
		want   float64
	}{
		{"nothing", nil, 0.5, 0},
		{"one", []float64{7}, 0.99, 7},
		{"lowest", []float64{2, 1}, 0, 1},
		{"lower of two in the middle", []float64{1, 2}, 0.5, 1},
		{"odd", []float64{9, 1, 5}, 0.5, 5},
		{"p95 of a hundred", hundred, 0.95, 95},
		{"p99 of a hundred", hundred, 0.99, 99},
		{"highest", hundred, 1, 100},
	} {
		if got := quantile(c.values, c.q); got != c.want {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the samples were put into another order, that of the rounds is lost")
	}
}

func TestSpreadCountsItsSamples(t *testing.T) {
	if got, want := spreadOf([]float64{3, 1, 2}), (spread{P50: 2, P95: 3, P99: 3, Samples: 3}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
}

func TestRatioComparesMediansAndRounds(t *testing.T) {
	// One bad round of both peers changes neither the medians nor the quotients.
	values, base := []float64{20, 20, 2000, 20}, []float64{10, 10, 1000, 10}
	if got := ratioOf(values, base); *got != (ratio{Medians: 2, Low: 2, High: 2}) {
		t.Errorf("%+v, not 2 throughout", *got)
	}
	// Two runs at once: a round's median counts, in whatever order the runs are.
	got := ratioOf(taken{{10, 30}, {60, 20}}.medians(), taken{{10, 10}, {10, 20}}.medians())
	if got.Low != 1 || got.High != 2 {
		t.Errorf("quarters %v and %v, not 1 and 2", got.Low, got.High)
	}
}

func TestNoRatioWithoutAReference(t *testing.T) {
	if got := ratioOf([]float64{1}, nil); got != nil {
		t.Errorf("%+v, though nothing was compared", *got)
	}
}
