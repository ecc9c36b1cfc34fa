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
		"unreachable":            {link.Done{Error: "the provider cannot be reached"}, route.Failed},
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
	r := newRig(t)
	r.load(`
providers:
  p: {family: openai, url: "https://p.example/v1", users: ["*"]}
  q: {family: openai, url: "https://q.example/v1", users: ["*"]}
models:
  small: {targets: [{provider: p, model: first}, {provider: q, model: second, fallback: 1}]}
`)
	run, front := r.started()
	number := uint64(0)
	var up *fake
	serve := func(end link.Done, cancel bool) string {
		number++
		model := front.begin(ask(number, run, "small")).Go.Model
		if up == nil {
			up = within(t, r.upstreams)
		}
		call := within(t, up.up).Call
		if cancel {
			front.send(link.FromFront{Cancel: number})
			if m := within(t, up.up); m.Cancel != call.Number {
				t.Errorf("%+v", m)
			}
		}
		end.Number = call.Number
		up.send(link.FromUpstream{Done: &end})
		within(t, r.ledger.settled)
		return model
	}
	overloaded := link.Done{Status: 529, Sent: true}
	for range 2 * route.Failures {
		if got := serve(overloaded, true); got != "first" {
			t.Fatalf("cancelled calls lead to %s", got)
		}
	}
	for range route.Failures {
		if got := serve(overloaded, false); got != "first" {
			t.Errorf("%s", got)
		}
	}
	if got := serve(link.Done{Status: 200, Sent: true, First: 1}, false); got != "second" {
		t.Errorf("the next call leads to %s", got)
	}
}
