package main

import (
	"math"
	"slices"
)

// spread describes many samples, in their own unit.
type spread struct {
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	Samples int     `json:"samples"`
}

func spreadOf(values []float64) spread {
	return spread{P50: median(values), P95: quantile(values, 0.95), P99: quantile(values, 0.99), Samples: len(values)}
}

func median(values []float64) float64 { return quantile(values, 0.5) }

// quantile is the smallest value that at least the share q of all values does not
// exceed. It is always one of the samples: nothing is interpolated.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// ratio compares two peers: the quotient of the medians, and the quartiles of the
// quotients of single rounds.
type ratio struct {
	Medians float64 `json:"medians"`
	Low     float64 `json:"p25"`
	High    float64 `json:"p75"`
}

// ratioOf takes n samples for each round, in the order of the rounds. It is nil if
// there is nothing to compare with.
func ratioOf(values, base []float64, n int) *ratio {
	if len(base) == 0 || len(base) != len(values) {
		return nil
	}
	var quotients []float64
	// Quotients within a round, because both peers ran under the same load there.
	for mine, theirs := slices.Chunk(values, n), slices.Collect(slices.Chunk(base, n)); len(theirs) > 0; {
		for round := range mine {
			quotients = append(quotients, median(round)/median(theirs[0]))
			theirs = theirs[1:]
		}
	}
	return &ratio{Medians: median(values) / median(base), Low: quantile(quotients, 0.25), High: quantile(quotients, 0.75)}
}
