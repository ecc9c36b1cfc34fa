package main

import (
	"errors"
	"path/filepath"
)

// The measurements of an agent's calls. A caller reserves and releases in turn, each durably.
const (
	whatCheck   = "a grant check"
	whatReserve = "a durable reservation"
	whatRate1   = "durable changes, 1 caller"
	whatRate64  = "durable changes, 64 callers"
	whatGain    = "64 callers to 1"
)

// ledgerCallers call at the same time in the rows with 64 callers.
const ledgerCallers = 64

// The turns of each caller in a round: enough for a time that is long beside one commit.
const (
	checksInRound = 200
	turnsOfOne    = 20
	turnsOfMany   = 10
)

// measureLedgers measures calls from inside sandboxes.
func (b *bench) measureLedgers(t *table) (err error) {
	w := &ledgers{site: site{bench: b, dir: b.scratch, here: b.thread}, folder: filepath.Join(b.scratch, "shared")}
	defer func() { err = errors.Join(err, w.close()) }()
	peers, err := w.open(t)
	if err != nil {
		return err
	}
	s, err := b.inRounds(func(_ int, s samples) error { return spendInTurns(peers, s) })
	if err != nil {
		return err
	}
	t.Figures = append(t.Figures, judgeLedgers(s)...)
	return errors.Join(w.measureFlood(t), w.few.socketMemory(t))
}

// spendInTurns has the peers do each errand directly after another, so that they meet the
// same load.
func spendInTurns(peers []*ledgerPeer, s samples) error {
	for _, o := range []ledgerOrder{{Check: true, Callers: 1, Turns: checksInRound}, {Callers: 1, Turns: turnsOfOne}, {Callers: ledgerCallers, Turns: turnsOfMany}} {
		for _, p := range peers {
			if o.Check && p.ledger != ledgerClove {
				continue
			}
			said, err := p.run(o)
			if err != nil {
				return err
			}
			rate := float64(o.Callers*o.Turns) / said.Seconds
			switch {
			case o.Check:
				s.add(whatCheck, p.name, said.Values...)
			case o.Callers == 1:
				s.add(whatReserve, p.name, said.Values...)
				s.add(whatRate1, p.name, rate)
			default:
				s.add(whatRate64, p.name, rate)
			}
		}
	}
	return nil
}

// judgeLedgers has a line for each peer and errand.
func judgeLedgers(s samples) (figures []figure) {
	s.divide(whatGain, whatRate64, whatRate1)
	// Others' rows cost nothing where the ratio is 1.
	aims := func(clove string) map[string]string {
		return map[string]string{ledgerClove: clove, ledgerMany: "ratio 1"}
	}
	for _, r := range []comparison{
		{what: whatCheck, unit: unitMS, aims: aims("0.3")},
		{what: whatReserve, unit: unitMS, aims: aims("3")},
		{what: whatRate1, unit: unitAnswers, aims: aims("")},
		{what: whatRate64, unit: unitAnswers, aims: aims("")},
		{what: whatGain, unit: unitTimes, aims: map[string]string{ledgerClove: "5 or more"}},
	} {
		figures = append(figures, r.figures(namesOf(ledgerKinds), s)...)
	}
	return figures
}
