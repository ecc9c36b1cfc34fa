package broker

import (
	"context"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// An answer for one connection is for the one that waited: the next one to the same name asks again, other rules that come
// into force leave the first one, and a rule that denies it cuts it. The control is an answer for the run.
func TestAnAnswerForOneConnection(t *testing.T) {
	t.Parallel()
	for _, once := range []bool{true, false} {
		var asked atomic.Int64
		f := serve(t, Config{Rules: rulesOf(t), Ask: func(context.Context, Decision) *egress.Rules {
			asked.Add(1)
			rules := rulesOf(t, "api.example.com:8080")
			if once {
				rules = rules.ForOne()
			}
			return rules
		}})
		f.resolver.set("api.example.com", "93.184.216.34")
		server := f.leadsTo("93.184.216.34:8080")
		standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0] + ":8080"
		first := f.gate.open(standin, "")
		if first.Result != wire.ResultAllowed {
			t.Fatalf("%+v", first)
		}
		defer (<-server).Close()
		if again := f.gate.open(standin, ""); again.Result != wire.ResultAllowed {
			t.Errorf("%+v", again)
		}
		defer (<-server).Close()
		if want := map[bool]int64{true: 2, false: 1}[once]; asked.Load() != want {
			t.Errorf("once: %v: asked %d times", once, asked.Load())
		}
		open := func() (n int) {
			f.broker.connections.mu.Lock()
			defer f.broker.connections.mu.Unlock()
			for _, c := range f.broker.connections.open {
				if c.fd >= 0 {
					n++
				}
			}
			return n
		}
		f.broker.Replace(rulesOf(t, "other.example.com"))
		if want := map[bool]int{true: 2, false: 0}[once]; open() != want {
			t.Errorf("once: %v: %d are open behind other rules", once, open())
		}
		denies, err := egress.New(egress.Config{Mode: agent.NetworkAllowlist, Rules: []agent.EgressRule{{Target: "api.example.com", Deny: true, Source: "test"}}})
		if err != nil {
			t.Fatal(err)
		}
		f.broker.Replace(denies)
		if open() != 0 {
			t.Errorf("once: %v: %d are open although a rule denies them", once, open())
		}
	}
}

// Where the client must show a name first, the answer is kept for the one connection that does.
func TestAnAnswerForOneConnectionThatShowsAName(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com:8080"), Ask: func(context.Context, Decision) *egress.Rules {
		asked.Add(1)
		return rulesOf(t, "api.example.com:8080", "api.example.com:443").ForOne()
	}})
	f.resolver.set("api.example.com", "93.184.216.34")
	f.leadsTo("93.184.216.34:443")
	to := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0] + ":443"
	if got := f.gate.open(to, ""); got.Result != wire.ResultVerify {
		t.Fatalf("%+v", got)
	}
	if got := f.gate.open(to, "api.example.com"); got.Result != wire.ResultAllowed || asked.Load() != 1 {
		t.Errorf("%+v, asked %d times", got, asked.Load())
	}
	if got := f.gate.open(to, ""); got.Result != wire.ResultVerify || asked.Load() != 2 {
		t.Errorf("the second: %+v, asked %d times", got, asked.Load())
	}
	if got := f.gate.open(to, "evil.example.com"); got.Result != wire.ResultDenied {
		t.Errorf("another name: %+v", got)
	}
}
