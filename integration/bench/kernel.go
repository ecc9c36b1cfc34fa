package main

import (
	"errors"
	"slices"
)

// What an agent's calls cost. A caller reserves and releases in turn, each durably.
const (
	whatCheck   = "a grant check"
	whatReserve = "a durable reservation"
	whatRate1   = "durable changes, 1 caller"
	whatRate64  = "durable changes, 64 callers"
	whatGain    = "64 callers to 1"
)

const (
	unitMS    = "ms"
	unitTimes = "times"
	unitMiB   = "MiB"
)

// ledgerCallers call at the same time in the rows with 64 callers.
const ledgerCallers = 64

// The turns of each caller in a round: enough for a time that is long beside one commit.
const (
	checksInRound = 200
	turnsOfOne    = 20
	turnsOfMany   = 10
)

// kernelFigure is one line of the fourth table.
type kernelFigure struct {
	What   string `json:"what"`
	Peer   string `json:"peer"`
	Unit   string `json:"unit"`
	Values spread `json:"values"`
	Ratio  *ratio `json:"ratio,omitempty"` // to the first line with the same What
	Aim    string `json:"aim,omitempty"`
}

// shared is the fourth table.
type shared struct {
	Absent  map[string]string `json:"absent"`
	Figures []kernelFigure    `json:"figures"`
}

// measureKernel measures calls from inside sandboxes, the same work at the Go API, and
// what a socket costs an agent that does not use it.
func (b *bench) measureKernel() (s *shared, err error) {
	w, err := newLedgers(b)
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	s = &shared{Absent: w.absent}
	err = w.measure(s)
	if err = errors.Join(err, w.close()); err != nil {
		return nil, err
	}
	for _, measure := range []func(*shared) error{b.measureStore, b.measureReservations, b.measureStarts} {
		if err := measure(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// measure has everything that is measured from inside sandboxes.
func (w *ledgers) measure(s *shared) error {
	samples, err := w.takeTurns()
	if err != nil {
		return err
	}
	s.Figures = w.judge(samples)
	for _, measure := range []func() ([]kernelFigure, error){w.measureFlood, w.few.socketMemory} {
		more, err := measure()
		if err != nil {
			return err
		}
		s.Figures = append(s.Figures, more...)
	}
	return nil
}

// ledgerSamples are those of one peer, in a slice for each round.
type ledgerSamples struct {
	checks, reserves taken
	rate1, rate64    []float64
}

// takeTurns has the peers do each errand directly after another, so that they meet the
// same load.
func (w *ledgers) takeTurns() (map[string]*ledgerSamples, error) {
	samples := map[string]*ledgerSamples{}
	for _, p := range w.peers {
		samples[p.name] = &ledgerSamples{}
	}
	for round := range warmups + w.rounds {
		for _, o := range []ledgerOrder{{Check: true, Callers: 1, Turns: checksInRound}, {Callers: 1, Turns: turnsOfOne}, {Callers: ledgerCallers, Turns: turnsOfMany}} {
			for _, p := range w.peers {
				if o.Check && p.ledger != ledgerClove {
					continue
				}
				said, err := p.run(o)
				if err != nil {
					return nil, err
				}
				if round >= warmups {
					samples[p.name].add(o, said)
				}
			}
		}
	}
	return samples, nil
}

func (s *ledgerSamples) add(o ledgerOrder, said ledgerReport) {
	rate := float64(o.Callers*o.Turns) / said.Seconds
	switch {
	case o.Check:
		s.checks = append(s.checks, said.MS)
	case o.Callers == 1:
		s.reserves, s.rate1 = append(s.reserves, said.MS), append(s.rate1, rate)
	default:
		s.rate64 = append(s.rate64, rate)
	}
}

// judge has a line for each peer and errand.
func (w *ledgers) judge(samples map[string]*ledgerSamples) []kernelFigure {
	var figures []kernelFigure
	rows := func(what, unit string, aims map[string]string, values func(*ledgerSamples) (all, byRound []float64)) {
		var base []float64
		for _, p := range w.peers {
			all, byRound := values(samples[p.name])
			if len(all) == 0 {
				continue
			}
			figures = append(figures, kernelFigure{What: what, Peer: p.name, Unit: unit, Values: spreadOf(all), Ratio: ratioOf(byRound, base, 1), Aim: aims[p.name]})
			if base == nil {
				base = byRound
			}
		}
	}
	// Others' rows cost nothing where the ratio is 1.
	aims := func(clove string) map[string]string {
		return map[string]string{ledgerClove: clove, ledgerMany: "ratio 1"}
	}
	rows(whatCheck, unitMS, aims("0.3"), func(s *ledgerSamples) (all, byRound []float64) { return s.checks.all(), s.checks.medians() })
	rows(whatReserve, unitMS, aims("3"), func(s *ledgerSamples) (all, byRound []float64) { return s.reserves.all(), s.reserves.medians() })
	rows(whatRate1, unitAnswers, aims(""), func(s *ledgerSamples) (all, byRound []float64) { return s.rate1, s.rate1 })
	rows(whatRate64, unitAnswers, aims(""), func(s *ledgerSamples) (all, byRound []float64) { return s.rate64, s.rate64 })
	rows(whatGain, unitTimes, map[string]string{ledgerClove: "5 or more"}, func(s *ledgerSamples) (all, byRound []float64) {
		gain := quotients(s.rate64, s.rate1)
		return gain, gain
	})
	return figures
}

// quotients divides round by round.
func quotients(values, by []float64) []float64 {
	all := slices.Clone(values)
	for i := range all {
		all[i] /= by[i]
	}
	return all
}
