package runtime

import (
	"context"
	"net/netip"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/broker"
)

// TestAPersonIsAskedOnce: for each target that no rule names, and never for what a rule denies.
func TestAPersonIsAskedOnce(t *testing.T) {
	t.Parallel()
	var asked []string
	yes := true
	spec := agent.Spec{Network: agent.NetworkAllowlist, Egress: agent.Egress{Rules: []agent.EgressRule{{Deny: true, Target: "evil.example.com", Source: "--deny"}}}}
	a := newAsker(spec, IO{AskNetwork: func(_ context.Context, rule agent.EgressRule) bool {
		asked = append(asked, rule.Target)
		return yes
	}})
	name := broker.Decision{Kind: broker.KindDNS, Name: "api.example.com", Reason: egress.ReasonNoRule}
	port := broker.Decision{Kind: broker.KindTCP, Name: "api.example.com", Address: netip.MustParseAddrPort("203.0.113.5:8080"), Reason: egress.ReasonPort}
	for range 2 {
		rules := a.decide(t.Context(), name)
		if rules == nil || !rules.Resolve("api.example.com").Allowed || rules.Resolve("other.example.com").Allowed {
			t.Fatalf("after a yes: %v", rules)
		}
	}
	if rules := a.decide(t.Context(), port); rules == nil || !rules.Resolve("api.example.com").Allowed {
		t.Error("the answer before is forgotten")
	}
	denied := broker.Decision{Kind: broker.KindDNS, Name: "evil.example.com", Reason: egress.ReasonDeny}
	if a.decide(t.Context(), denied) != nil {
		t.Error("what a rule denies was allowed")
	}
	yes = false
	for range 2 {
		if a.decide(t.Context(), broker.Decision{Kind: broker.KindDNS, Name: "no.example.com", Reason: egress.ReasonNoRule}) != nil {
			t.Error("after a no it is allowed")
		}
	}
	if len(asked) != 3 || asked[0] != "api.example.com" || asked[1] != "api.example.com:8080" || asked[2] != "no.example.com" {
		t.Errorf("asked %q", asked)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	a.ask = func(context.Context, agent.EgressRule) bool { return true }
	if a.decide(over, broker.Decision{Kind: broker.KindDNS, Name: "late.example.com", Reason: egress.ReasonNoRule}) != nil {
		t.Error("an answer behind the run's end counts")
	}
}

func TestNobodyIsAskedByDefault(t *testing.T) {
	t.Parallel()
	if newAsker(agent.Spec{}, IO{}) != nil {
		t.Error("it returned an asker")
	}
}
