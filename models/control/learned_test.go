package control

import (
	"testing"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// asksFor begins a call with an estimate of the input, and returns what is reserved for it.
func (s *several) asksFor(estimate int64) int64 {
	s.t.Helper()
	s.number++
	b := ask(s.number, s.run, "small")
	b.In = estimate
	s.front.send(link.FromFront{Begin: &b})
	s.goes()
	all, _ := s.ledger.reservations()
	return all[len(all)-1].amounts[budget.TokensIn]
}

// Within a run, the estimate of the input of a model rises to what the calls before have taught,
// and never falls. Estimated figures and other runs teach nothing.
func TestTheEstimateOfTheInputLearns(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, twoTargets)
	counted := func(in int64, estimated bool) link.Done {
		return link.Done{Status: 200, Sent: true, First: 1, Complete: true, Reported: true, Estimated: estimated, Usage: models.Usage{In: in / 2, Cached: in - in/2, Out: 1}}
	}
	for i, row := range []struct {
		estimate, want int64
		ends           link.Done
	}{
		{100, 100, counted(900, true)}, // estimated: nothing is learned
		{100, 100, counted(300, false)},
		{100, 300, counted(100, false)}, // lower: the estimate stays
		{50, 150, counted(50, false)},
		{10_000, 10_200, counted(20_000, false)}, // no more above it than was seen
		{11_000, 21_000, counted(11_000, false)},
	} {
		if got := s.asksFor(row.estimate); got != row.want {
			t.Errorf("%d: %d reserved for %d, want %d", i, got, row.estimate, row.want)
		}
		s.ends(row.ends)
		within(t, s.ledger.settled)
		within(t, s.called)
	}
	s.run = s.serve(1000)
	within(t, s.front.front) // Serve
	if got := s.asksFor(100); got != 100 {
		t.Errorf("another run: %d reserved", got)
	}
}

// The record and the report of a call say that its tokens are estimated.
func TestEstimatedCallsAreMarked(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, twoTargets)
	for _, estimated := range []bool{false, true} {
		s.begin()
		end := answered
		end.Estimated = estimated
		s.ends(end)
		within(t, s.ledger.settled)
		if c := within(t, s.called); c.Estimated != estimated {
			t.Errorf("%+v", c)
		}
	}
	if use := s.used(); len(use) != 1 || use[0].Calls != 2 || use[0].Estimated != 1 {
		t.Errorf("%+v", use)
	}
}
