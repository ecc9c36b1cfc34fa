package main

import (
	"errors"
	"fmt"
)

// What is measured of a way to a model. The time to the first token is without the provider's
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

const unitKiB = "KiB"

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

// modelFigure is one line of the fifth table.
type modelFigure struct {
	What   string `json:"what"`
	Peer   string `json:"peer"`
	Unit   string `json:"unit"`
	Values spread `json:"values"`
	// Added is the time beyond that of the direct connection, in ms.
	Added *added `json:"added_ms,omitempty"`
	// Ratio is that to the gateway: of the rates, of memory, or of what was added.
	Ratio *ratio `json:"to_gateway,omitempty"`
	Aim   string `json:"aim,omitempty"`
}

// modelResults is the fifth table.
type modelResults struct {
	Absent  map[string]string `json:"absent"`
	Figures []modelFigure     `json:"figures"`
}

// measureModels lets all ways to a provider do the same work in turn.
func (b *bench) measureModels() (m *modelResults, err error) {
	w, err := newModelWorld(b)
	if err == nil {
		m, err = w.measure()
	}
	return m, errors.Join(err, w.close())
}

// measure has memory first: later the heaps have room for many streams.
func (w *modelWorld) measure() (*modelResults, error) {
	m := &modelResults{Absent: w.absent}
	held, err := w.measureMemory()
	if err != nil {
		return nil, err
	}
	samples, err := w.takeTurns()
	if err != nil {
		return nil, err
	}
	for _, e := range modelErrands {
		m.Figures = append(m.Figures, judgeModels(e, samples[e.what])...)
	}
	m.Figures = append(m.Figures, held...)
	return m, nil
}

// takeTurns returns the samples by errand and peer. The peers follow each other directly, so
// that they meet the same load.
func (w *modelWorld) takeTurns() (map[string]map[string]taken, error) {
	samples := map[string]map[string]taken{}
	for _, e := range modelErrands {
		samples[e.what] = map[string]taken{}
	}
	for round := range warmups + w.rounds {
		for _, e := range modelErrands {
			for _, p := range w.peers {
				said, err := p.run(e.does)
				if err != nil {
					return nil, fmt.Errorf("cannot measure %s: %w", e.what, err)
				}
				if round >= warmups {
					samples[e.what][p.name] = append(samples[e.what][p.name], e.values(said))
				}
			}
		}
	}
	return samples, nil
}

// values are what an errand measures: times, or a rate.
func (e modelErrand) values(said modelReport) []float64 {
	switch {
	case e.unit == unitMS:
		return said.MS
	case e.does.Stream:
		return []float64{float64(said.Tokens) / said.Seconds}
	}
	return []float64{float64(len(said.MS)) / said.Seconds}
}

// judgeModels computes the figures of one errand, in the order of modelKinds. Of times, the
// direct connection's is subtracted round by round: only what a way adds is compared.
func judgeModels(e modelErrand, byPeer map[string]taken) (figures []modelFigure) {
	gain := func(peer string) []float64 { return byPeer[peer].medians() }
	if e.unit == unitMS {
		gain = func(peer string) []float64 { return less(byPeer[peer].medians(), byPeer[peerDirect].medians()) }
	}
	direct := spreadOf(byPeer[peerDirect].all())
	for _, k := range modelKinds {
		t := byPeer[k.name]
		if len(t) == 0 {
			continue
		}
		f := modelFigure{What: e.what, Peer: k.name, Unit: e.unit, Values: spreadOf(t.all())}
		if k.name == peerClove {
			f.Aim = e.aim
		}
		if k.name != peerDirect && e.unit == unitMS && direct.Samples > 0 {
			f.Added = &added{P50: median(gain(k.name)), P99: f.Values.P99 - direct.P99}
		}
		if k.name != peerGateway && (k.name != peerDirect || e.unit != unitMS) {
			f.Ratio = ratioOf(gain(k.name), gain(peerGateway), 1)
		}
		figures = append(figures, f)
	}
	return figures
}
