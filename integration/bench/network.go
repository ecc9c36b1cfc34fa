package main

import (
	"fmt"
	"slices"
)

// What is measured of a way out. A connection's time is that from connect(2) to
// the first byte that came back; a denial's ends with the refusal.
const (
	whatOne     = "one connection"
	whatMany    = "64 connections"
	whatAddress = "new, by address"
	whatName    = "new, by name"
	whatFresh   = "new, name looked up"
	whatDenied  = "denied"
	whatAnswers = "DNS answers"
	whatKnown   = "DNS answers, known"
)

const (
	unitRate    = "MiB/s"
	unitLatency = "µs"
	unitAnswers = "per second"
)

// errand is one row of the network table: what the client does, and the unit of what it
// measures.
type errand struct {
	what string
	unit string
	does order // for the client; Tag is set in each round
}

// many is the number of connections at once in the second row.
const many = 64

// errands fit into what a gate allows. It answers 200 questions a second, 400 in a
// burst, and the other errands of a round take more than a second.
var errands = []errand{
	{whatOne, unitRate, order{Connections: 1, Bytes: 512 << 20, Address: serverAddress + ":" + portByAddress}},
	{whatMany, unitRate, order{Connections: many, Bytes: 512 << 20 / many, Address: serverAddress + ":" + portByAddress}},
	{whatAddress, unitLatency, order{Times: 50, Address: serverAddress + ":" + portByAddress}},
	{whatName, unitLatency, order{Times: 50, Address: serverAddress + ":" + portByName, Name: siteName}},
	{whatFresh, unitLatency, order{Times: 20, Name: freshName, Lookup: true}},
	{whatDenied, unitLatency, order{Times: 20, Address: serverAddress + ":" + portDenied, Denied: true}},
	{whatAnswers, unitAnswers, order{Questions: 100, Name: freshName}},
	{whatKnown, unitAnswers, order{Questions: 100, Name: siteName}},
}

// networkFigure is one line of the network table.
type networkFigure struct {
	Peer   string `json:"peer"`
	What   string `json:"what"`
	Unit   string `json:"unit"`
	Values spread `json:"values"`
	// Added is the latency beyond that of the direct connection.
	Added *added `json:"added_us,omitempty"`
	// Ratio is that to the best proxy: of the rates, or of what was added.
	Ratio *ratio `json:"to_best_proxy,omitempty"`
	Best  string `json:"best_proxy,omitempty"`
}

type added struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// network is the second table.
type network struct {
	Absent  map[string]string `json:"absent"`
	Figures []networkFigure   `json:"figures"`
}

// taken are the samples of one peer on one errand, in a slice for each round.
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

// measureNetwork lets all ways out perform all errands in turn.
func (b *bench) measureNetwork() (n *network, err error) {
	w, err := newWorld(b)
	if err != nil {
		return nil, err
	}
	defer func() {
		if cerr := w.close(); err == nil {
			err = cerr
		}
	}()
	n = &network{Absent: map[string]string{}}
	var ways []*way
	for _, k := range wayKinds {
		way, err := k.open(w)
		if err != nil {
			n.Absent[k.name] = err.Error()
			continue
		}
		ways = append(ways, way)
	}
	samples, err := b.takeTurns(ways)
	if err != nil {
		return nil, err
	}
	for _, e := range errands {
		n.Figures = append(n.Figures, judge(e, samples[e.what])...)
	}
	return n, nil
}

// takeTurns returns the samples by errand and peer.
func (b *bench) takeTurns(ways []*way) (map[string]map[string]taken, error) {
	samples := map[string]map[string]taken{}
	for _, e := range errands {
		samples[e.what] = map[string]taken{}
	}
	for round := range warmups + b.rounds {
		for _, e := range errands {
			// The ways follow each other directly, so that they meet the same load.
			for _, w := range ways {
				if !w.can(e.does) {
					continue
				}
				o := e.does
				o.Tag = fmt.Sprintf("%d", round)
				values, err := w.client.run(o)
				if err != nil {
					return nil, fmt.Errorf("cannot measure %s of %s: %w", e.what, w.name, err)
				}
				if round >= warmups {
					samples[e.what][w.name] = append(samples[e.what][w.name], values)
				}
			}
		}
	}
	return samples, nil
}

// judge computes the figures of one errand, in the order of wayKinds. For latencies the
// direct connection is subtracted first: only what a way adds is compared.
func judge(e errand, byPeer map[string]taken) []networkFigure {
	gain := func(peer string) []float64 { return byPeer[peer].medians() }
	if e.unit == unitLatency {
		gain = func(peer string) []float64 { return less(byPeer[peer].medians(), byPeer[peerDirect].medians()) }
	}
	best := bestProxy(e.unit, byPeer, gain)
	var figures []networkFigure
	for _, k := range wayKinds {
		t := byPeer[k.name]
		if len(t) == 0 {
			continue
		}
		f := networkFigure{Peer: k.name, What: e.what, Unit: e.unit, Values: spreadOf(t.all())}
		if direct := spreadOf(byPeer[peerDirect].all()); e.unit == unitLatency && k.name != peerDirect {
			f.Added = &added{P50: f.Values.P50 - direct.P50, P99: f.Values.P99 - direct.P99}
		}
		if best != "" && k.name != peerDirect {
			f.Best, f.Ratio = best, ratioOf(gain(k.name), gain(best), 1)
		}
		figures = append(figures, f)
	}
	return figures
}

// bestProxy is the proxy that clove is compared with: the one with the higher rate or
// the smaller added latency. It is empty if none was measured.
func bestProxy(unit string, byPeer map[string]taken, gain func(string) []float64) string {
	best := ""
	for _, name := range proxies {
		if len(byPeer[name]) == 0 {
			continue
		}
		mine, its := median(gain(name)), median(gain(best))
		if best == "" || (unit == unitLatency && mine < its) || (unit != unitLatency && mine > its) {
			best = name
		}
	}
	return best
}

// less subtracts one column from another, round by round. Without another there is
// nothing to subtract.
func less(values, base []float64) []float64 {
	if len(base) == 0 {
		return values
	}
	differences := make([]float64, len(values))
	for i := range differences {
		differences[i] = values[i] - base[i]
	}
	return differences
}
