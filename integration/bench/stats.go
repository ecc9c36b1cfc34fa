package main

import (
	"cmp"
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

// taken are the samples of one peer, in a slice for each round.
type taken [][]float64

func (t taken) all() []float64 { return slices.Concat(t...) }

// medians has one value for each round, so that peers can be compared round by round.
func (t taken) medians() []float64 {
	medians := make([]float64, len(t))
	for i, round := range t {
		medians[i] = median(round)
	}
	return medians
}

// samples are by what was measured, and by peer.
type samples map[string]map[string]taken

// add keeps what one round has measured.
func (s samples) add(what, peer string, values ...float64) {
	if s[what] == nil {
		s[what] = map[string]taken{}
	}
	s[what][peer] = append(s[what][peer], values)
}

// divide adds the quotients of two measurements of each peer, round by round.
func (s samples) divide(what, values, by string) {
	for peer, t := range s[values] {
		for i, base := range s[by][peer].medians() {
			s.add(what, peer, t.medians()[i]/base)
		}
	}
}

// inRounds calls do once in each round. The samples of the rounds that warm caches are dropped.
func (b *bench) inRounds(do func(round int, s samples) error) (samples, error) {
	warm, counted := samples{}, samples{}
	for round := range warmups + b.rounds {
		s := counted
		if round < warmups {
			s = warm
		}
		if err := do(round, s); err != nil {
			return nil, err
		}
	}
	return counted, nil
}

// ratio compares two peers: the quotient of the medians, and the quartiles of the
// quotients of single rounds.
type ratio struct {
	Medians float64 `json:"medians"`
	Low     float64 `json:"p25"`
	High    float64 `json:"p75"`
}

// ratioOf takes a value for each round. It is nil if there is nothing to compare with.
func ratioOf(values, base []float64) *ratio {
	if len(base) == 0 || len(base) != len(values) {
		return nil
	}
	// Quotients within a round, because both peers ran under the same load there.
	quotients := make([]float64, len(values))
	for i := range values {
		quotients[i] = values[i] / base[i]
	}
	return &ratio{Medians: median(values) / median(base), Low: quantile(quotients, 0.25), High: quantile(quotients, 0.75)}
}

// comparison compares peers by one measurement.
type comparison struct {
	what, unit string
	base       string            // the peer that the others are divided by; empty: the first that has samples
	without    string            // the peer that is subtracted first, round by round: only what is beyond it is compared
	aims       map[string]string // by peer
}

// figures has a line for each of the peers that has samples.
func (r comparison) figures(peers []string, s samples) (figures []figure) {
	byPeer := s[r.what]
	for _, peer := range peers {
		t := byPeer[peer]
		if len(t) == 0 {
			continue
		}
		r.base = cmp.Or(r.base, peer)
		f := figure{What: r.what, Peer: peer, Unit: r.unit, Values: spreadOf(t.all()), Aim: r.aims[peer]}
		if r.without != "" && peer != r.without {
			f.Added = &added{P50: median(r.gain(peer, byPeer)), P99: f.Values.P99 - quantile(byPeer[r.without].all(), 0.99)}
		}
		if peer != r.base && peer != r.without {
			if f.Ratio = ratioOf(r.gain(peer, byPeer), r.gain(r.base, byPeer)); f.Ratio != nil {
				f.Base = r.base
			}
		}
		figures = append(figures, f)
	}
	return figures
}

// gain is what a peer is compared by: a value for each round.
func (r comparison) gain(peer string, byPeer map[string]taken) []float64 {
	values := byPeer[peer].medians()
	// Without samples there is nothing to subtract: nothing denies a direct connection.
	if base := byPeer[r.without].medians(); len(base) > 0 {
		for i := range values {
			values[i] -= base[i]
		}
	}
	return values
}
