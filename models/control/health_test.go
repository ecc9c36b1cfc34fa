package control

import (
	"testing"
	"time"

	"clove.run/clove/models/link"
	"clove.run/clove/models/route"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		done link.Done
		want route.Outcome
	}{
		"an answer":              {link.Done{Status: 200, First: time.Second, Complete: true}, route.Succeeded},
		"an answer that is cut":  {link.Done{Status: 200, First: time.Second, Error: "the client is gone"}, route.Succeeded},
		"an empty answer":        {link.Done{Status: 200, Error: "the answer broke off"}, route.Failed},
		"unreachable":            {link.Done{Unreached: true, Error: "the provider cannot be reached"}, route.Unreached},
		"too slow":               {link.Done{Sent: true, Error: "the provider did not answer in time"}, route.Failed},
		"overloaded":             {link.Done{Status: 529}, route.Failed},
		"too many requests":      {link.Done{Status: 429}, route.Failed},
		"a wrong request":        {link.Done{Status: 400}, route.Unknown},
		"a request that is sent": {link.Done{}, route.Unknown},
		"no permission":          {link.Done{Status: 403}, route.Unknown},
	} {
		if got := outcome(row.done); got != row.want {
			t.Errorf("%s: %d, want %d", name, got, row.want)
		}
	}
}

// Calls go to the next target while the first fails. What an agent cancels says nothing.
func TestCallsGoToTheNextTarget(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, twoTargets)
	for range 2 * route.Failures {
		if got := s.begin(); got != "first" {
			t.Fatalf("cancelled calls lead to %s", got)
		}
		s.front.send(link.FromFront{Cancel: s.number})
		if m := within(t, s.up.up); m.Cancel != s.call.Number {
			t.Errorf("%+v", m)
		}
		s.ends(overloaded)
		within(t, s.ledger.settled)
		s.stands()
	}
	for range route.Failures {
		if got := s.begin(); got != "first" {
			t.Errorf("%s", got)
		}
		if got := s.fails(overloaded); got != "second" {
			t.Errorf("the call goes on with %s", got)
		}
		s.ends(answered)
		within(t, s.ledger.settled)
	}
	if got := s.begin(); got != "second" {
		t.Errorf("the next call leads to %s", got)
	}
}

// An agent whose own requests fail does not keep another from the target, also where both
// have one owner. The controls: it is kept from it itself, and so are others where none of
// them reaches it.
func TestAnAgentOpensNoBreakerForOthers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end   link.Done
		other string // where the calls of others lead
	}{
		"control":     {unreachable, "second"},
		"overloaded":  {overloaded, "first"},
		"broken":      {link.Done{Status: 500, Sent: true, First: 1}, "first"},
		"too slow":    {tooSlow, "first"},
		"broken off":  {link.Done{Sent: true, Error: "the provider cannot be reached"}, "first"},
		"not allowed": {link.Done{Status: 403, Sent: true, First: 1}, "first"},
	} {
		s := newSeveral(t, twoTargets)
		other := s.serve(1000)
		within(t, s.front.front)
		for range 2 * route.Failures {
			switch at := s.begin(); {
			case at == "second":
				s.ends(answered)
			case another(row.end):
				s.fails(row.end)
				s.ends(answered)
			default:
				s.ends(row.end)
			}
			within(t, s.ledger.settled)
		}
		if got := s.begin(); got != "second" && name != "not allowed" {
			t.Errorf("%s: its own calls lead to %s", name, got)
		}
		if got := s.beginOf(other); got != row.other {
			t.Errorf("%s: another's call leads to %s", name, got)
		}
	}
}
