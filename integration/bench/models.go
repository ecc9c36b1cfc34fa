package main

import (
	"errors"
	"fmt"
	"path/filepath"
)

// The measurements of a way to a model. The time to the first token is without the provider's
// own part of it.
const (
	whatFirstToken  = "first token, 1 stream"
	whatFirstAtOnce = "the same, calls without a pause"
	whatFirstTokens = "first token, 64 streams"
	whatCallRate    = "calls without a stream, 16 callers"
	whatTokenRate   = "tokens of 64 streams"
	whatProcesses   = "host memory of the processes"
	whatOpenStream  = "host memory of an open stream"
)

// modelErrand is one row of the fifth table.
type modelErrand struct {
	what string
	unit string
	does modelOrder
	aim  string // clove's
}

var modelErrands = []modelErrand{
	{whatFirstToken, unitMS, modelOrder{Model: modelSteady, Stream: true, Callers: 1, Turns: 20, PauseMS: 20}, "added p50 1.5, ratio 0.5"},
	{whatFirstAtOnce, unitMS, modelOrder{Model: modelSteady, Stream: true, Callers: 1, Turns: 20}, ""},
	{whatFirstTokens, unitMS, modelOrder{Model: modelSteady, Stream: true, Callers: maxStreams, Turns: 1}, ""},
	{whatCallRate, unitAnswers, modelOrder{Model: modelSwift, Callers: 16, Turns: 10}, ""},
	{whatTokenRate, unitAnswers, modelOrder{Model: modelSwift, Stream: true, Callers: maxStreams, Turns: 2}, "ratio 1 or more"},
}

// measureModels lets all ways to a provider do the same work in turn. Memory is first: later
// the heaps have room for many streams.
func (b *bench) measureModels(t *table) (err error) {
	w := &modelWorld{site{bench: b, dir: filepath.Join(b.scratch, "models")}}
	defer func() { err = errors.Join(err, w.close()) }()
	peers, err := w.open(t)
	if err != nil {
		return err
	}
	held, err := measureMemory(peers)
	if err != nil {
		return err
	}
	s, err := b.inRounds(func(_ int, s samples) error { return askInTurns(peers, s) })
	if err != nil {
		return err
	}
	for _, e := range modelErrands {
		t.Figures = append(t.Figures, judgeModels(e, s)...)
	}
	t.Figures = append(t.Figures, held...)
	return nil
}

// askInTurns has the peers follow each other directly, so that they meet the same load.
func askInTurns(peers []*modelPeer, s samples) error {
	for _, e := range modelErrands {
		for _, p := range peers {
			said, err := p.run(e.does)
			if err != nil {
				return fmt.Errorf("cannot measure %s: %w", e.what, err)
			}
			s.add(e.what, p.name, e.values(said)...)
		}
	}
	return nil
}

// values are what an errand measures: times, or a rate.
func (e modelErrand) values(said report) []float64 {
	switch {
	case e.unit == unitMS:
		return said.Values
	case e.does.Stream:
		return []float64{float64(said.Tokens) / said.Seconds}
	}
	return []float64{float64(len(said.Values)) / said.Seconds}
}

// judgeModels computes the figures of one errand, in the order of modelKinds. Of times, the
// direct connection's is subtracted round by round: only what a way adds is compared.
func judgeModels(e modelErrand, s samples) []figure {
	r := comparison{what: e.what, unit: e.unit, base: peerGateway, aims: map[string]string{peerClove: e.aim}}
	if e.unit == unitMS {
		r.without = peerDirect
	}
	return r.figures(namesOf(modelKinds), s)
}
