package main

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// roleLedger is this binary as an agent that spends.
const roleLedger = "ledger"

// The agent's grant and the dimension that it spends.
const (
	checked = "tool:fetch"
	spent   = "reviews"
)

// ledgerOrder is what the agent is told to do, one JSON object a line: each of so many
// callers at once takes so many turns, or all of them go on for a time.
type ledgerOrder struct {
	Ledger  string
	Check   bool // a turn asks about a grant; otherwise turns reserve and release, one after the other
	Callers int
	Turns   int
	Seconds float64 // instead of turns: with Check, ask as fast as possible
	Burn    float64 // instead of callers: so many processors' time, for Seconds
}

// ledger is where the agent reserves. spend returns how long each reservation took, in
// milliseconds.
type ledger interface {
	spend(callers, turns int) ([]float64, error)
}

// ledgerMain is main of this binary in the role of an agent. The argument is the folder
// that it shares with the host.
func ledgerMain(args []string) error {
	if len(args) != 1 {
		return errors.New("bench ledger FOLDER")
	}
	s := &spender{folder: args[0], open: map[string]ledger{}}
	return answerOrders(os.Stdin, os.Stdout, s.obey)
}

// spender keeps the ledgers that it has used.
type spender struct {
	folder string
	open   map[string]ledger
}

func (s *spender) obey(o ledgerOrder) (r report) {
	began := time.Now()
	var err error
	if o.Burn > 0 {
		burn(o.Burn, o.until(began))
	} else {
		r.Values, err = s.take(o, began)
	}
	r.Seconds = time.Since(began).Seconds()
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

// until is when an order that goes on for a time ends.
func (o ledgerOrder) until(began time.Time) time.Time {
	return began.Add(time.Duration(o.Seconds * float64(time.Second)))
}

// take has the callers take their turns.
func (s *spender) take(o ledgerOrder, began time.Time) ([]float64, error) {
	l, err := s.ledger(o.Ledger)
	if err != nil {
		return nil, err
	}
	clove, ok := l.(*agentSocket)
	switch {
	case ok && o.Seconds > 0:
		return nil, clove.flood(o.Callers, o.until(began))
	case ok && o.Check:
		return clove.check(o.Turns)
	}
	return l.spend(o.Callers, o.Turns)
}

// ledger returns an open one. Opening it is in no measurement: the rounds that are not
// counted come first.
func (s *spender) ledger(name string) (l ledger, err error) {
	if s.open[name] != nil {
		return s.open[name], nil
	}
	switch name {
	case ledgerClove:
		l = &agentSocket{path: os.Getenv("CLOVE_AGENT_SOCKET")}
	case ledgerSQLite:
		l, err = openSQLite(s.folder)
	case ledgerRedis:
		l = &redis{folder: s.folder}
	default:
		err = fmt.Errorf("no ledger is called %q", name)
	}
	if err == nil {
		s.open[name] = l
	}
	return l, err
}
