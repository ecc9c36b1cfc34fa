package main

import (
	"cmp"
	"errors"
	"fmt"
)

// The measurements of a way out. A connection's time is that from connect(2) to
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

// measureNetwork lets all ways out perform all errands in turn.
func (b *bench) measureNetwork(t *table) (err error) {
	w, err := newWorld(b)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	ways := openAll(w, t, wayKinds)
	s, err := b.inRounds(func(round int, s samples) error { return takeTurns(ways, round, s) })
	if err != nil {
		return err
	}
	for _, e := range errands {
		t.Figures = append(t.Figures, judge(e, s)...)
	}
	return nil
}

// takeTurns has the ways follow each other directly, so that they meet the same load.
func takeTurns(ways []*way, round int, s samples) error {
	for _, e := range errands {
		for _, w := range ways {
			if !w.can(e.does) {
				continue
			}
			o := e.does
			o.Tag = fmt.Sprintf("%d", round)
			said, err := w.client.run(o)
			if err != nil {
				return fmt.Errorf("cannot measure %s of %s: %w", e.what, w.name, err)
			}
			s.add(e.what, w.name, said.Values...)
		}
	}
	return nil
}

// judge computes the figures of one errand. Of latencies, the direct connection's is
// subtracted first: only what a way adds is compared.
func judge(e errand, s samples) []figure {
	r := comparison{what: e.what, unit: e.unit}
	if e.unit == unitLatency {
		r.without = peerDirect
	}
	r.base = bestProxy(r, s[e.what])
	return r.figures(namesOf(wayKinds), s)
}

// bestProxy is the proxy that the others are compared with: the one with the higher rate or
// the smaller added latency. It is any of them if none was measured.
func bestProxy(r comparison, byPeer map[string]taken) string {
	best := ""
	for _, name := range proxies {
		if len(byPeer[name]) == 0 {
			continue
		}
		mine, its := median(r.gain(name, byPeer)), median(r.gain(best, byPeer))
		if best == "" || (r.unit == unitLatency && mine < its) || (r.unit != unitLatency && mine > its) {
			best = name
		}
	}
	return cmp.Or(best, proxies[0])
}
