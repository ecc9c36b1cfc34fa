package broker

import (
	"context"
	"testing"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// TestRulesMayBeReconsidered: what an answer allows passes at once; without one it is denied.
func TestRulesMayBeReconsidered(t *testing.T) {
	t.Parallel()
	asked := 0
	f := serve(t, Config{Rules: rulesOf(t, "other.example.com"), Ask: func(_ context.Context, d Decision) *egress.Rules {
		asked++
		if d.Name == "api.example.com" {
			return rulesOf(t, "api.example.com")
		}
		return nil
	}})
	f.resolver.set("api.example.com", "93.184.216.34")
	if answer := f.gate.lookup("no.example.com", dnsmsg.TypeA); answer.Result != wire.ResultDenied {
		t.Errorf("not allowed: %+v", answer)
	}
	if answer := f.gate.lookup("api.example.com", dnsmsg.TypeA); answer.Result != wire.ResultAllowed {
		t.Errorf("allowed now: %+v", answer)
	}
	if answer := f.gate.lookup("api.example.com", dnsmsg.TypeA); answer.Result != wire.ResultAllowed || asked != 2 {
		t.Errorf("it was asked %d times: %+v", asked, answer)
	}
}
