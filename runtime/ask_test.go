package runtime

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/broker"
)

// connection is what a broker asks about.
func connection(name string, port uint16) broker.Decision {
	return broker.Decision{Kind: broker.KindTCP, Name: name, Address: netip.AddrPortFrom(netip.MustParseAddr("203.0.113.5"), port), Reason: egress.ReasonNoRule}
}

// TestAPersonIsAskedOnce: at the terminal, for each target.
func TestAPersonIsAskedOnce(t *testing.T) {
	t.Parallel()
	var asked []string
	yes := true
	spec := agent.Spec{Network: agent.NetworkAllowlist}
	at := newAtTerminal(spec, agent.Owner{}, func(_ context.Context, rule agent.EgressRule) bool {
		asked = append(asked, rule.Target)
		return yes
	})
	a := &asker{held: func() {}, ask: at.decide, open: map[string]*asking{}}
	for range 2 {
		rules := a.decide(t.Context(), connection("api.example.com", 443))
		if rules == nil || !rules.Resolve("api.example.com").Allowed || rules.Resolve("other.example.com").Allowed {
			t.Fatalf("after a yes: %v", rules)
		}
	}
	if rules := a.decide(t.Context(), connection("api.example.com", 8080)); rules == nil || !rules.ConnectName(egress.TCP, "api.example.com", 443).Allowed {
		t.Error("the answer before is forgotten")
	}
	yes = false
	for range 2 {
		if a.decide(t.Context(), connection("no.example.com", 443)) != nil {
			t.Error("after a no it is allowed")
		}
	}
	if want := []string{"api.example.com:443", "api.example.com:8080", "no.example.com:443"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	at.ask = func(context.Context, agent.EgressRule) bool { return true }
	if a.decide(over, connection("late.example.com", 443)) != nil {
		t.Error("an answer behind the run's end counts")
	}
}

// Equal questions are one while it waits, and others do not wait for it. What a user may not allow is not asked.
func TestEqualQuestionsAreOne(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	asked, answer := map[string]int{}, make(chan *egress.Rules)
	a := &asker{owner: agent.Owner{UID: 1000}, held: func() {}, open: map[string]*asking{}, ask: func(_ context.Context, rule agent.EgressRule) *egress.Rules {
		mu.Lock()
		asked[rule.Target]++
		mu.Unlock()
		if rule.Target == "slow.example.com:443" {
			return <-answer
		}
		return nil
	}}
	yes, err := egress.New(egress.Config{Mode: agent.NetworkAllowlist})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan *egress.Rules)
	for range 8 {
		go func() { got <- a.decide(t.Context(), connection("slow.example.com", 443)) }()
	}
	if a.decide(t.Context(), connection("other.example.com", 443)) != nil {
		t.Error("another question got the answer")
	}
	for ended := 0; ended < 8; {
		select {
		case rules := <-got:
			if ended++; rules != yes {
				t.Errorf("%v", rules)
			}
		case answer <- yes: // twice or more, where one began behind the answer to the others
		}
	}
	if a.decide(t.Context(), broker.Decision{Kind: broker.KindTCP, Address: netip.MustParseAddrPort("169.254.169.254:80")}) != nil || asked["169.254.169.254:80"] != 0 {
		t.Errorf("%v", asked)
	}
}

// Without a policy that asks there is no question.
func TestNothingIsAskedByDefault(t *testing.T) {
	t.Parallel()
	if (&launch{}).asks() != nil {
		t.Error("it asks")
	}
}
