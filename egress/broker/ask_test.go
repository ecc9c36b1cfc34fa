package broker

import (
	"context"
	"sync/atomic"
	"testing"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// queries is how many questions for a name have left.
func (f *fixture) queries(name string) (count int) {
	for _, asked := range f.resolver.questions() {
		if asked == name {
			count++
		}
	}
	return count
}

// Before people have allowed a name no question for it leaves, and the agent connects to a stand-in. Then the true
// address is resolved and dialled, for this name alone. The control is a name that a rule allows: it is asked for at once.
func TestAConnectionWaitsForPeople(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan Decision, 8), make(chan *egress.Rules)
	f := serve(t, Config{Rules: rulesOf(t, "other.example.com"), Ask: func(_ context.Context, d Decision) *egress.Rules {
		asked <- d
		return <-answer
	}})
	f.resolver.set("other.example.com", "93.184.216.35")
	f.resolver.set("api.example.com", "93.184.216.34")
	if got := addresses(t, f.gate.lookup("other.example.com", dnsmsg.TypeA)); len(got) != 1 || got[0] != "93.184.216.35" || f.queries("other.example.com") != 1 {
		t.Errorf("control: %q", got)
	}
	standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))
	if again := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA)); len(standin) != 1 || again[0] != standin[0] {
		t.Fatalf("%q, then %q", standin, again)
	}
	if v6 := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeAAAA)); len(v6) != 0 {
		t.Errorf("%q", v6)
	}
	server := f.leadsTo("93.184.216.34:8080")
	opened := make(chan wire.Answer)
	go func() { opened <- f.gate.open(standin[0]+":8080", "") }()
	if d := <-asked; d.Name != "api.example.com" || d.Target() != "api.example.com:8080" || f.queries("api.example.com") != 0 {
		t.Errorf("%+v, and %d questions have left", d, f.queries("api.example.com"))
	}
	answer <- rulesOf(t, "api.example.com:8080")
	if got := <-opened; got.Result != wire.ResultAllowed {
		t.Fatalf("%+v", got)
	}
	(<-server).Close()
	if n := f.queries("api.example.com"); n == 0 {
		t.Error("it is not resolved")
	}
	if got := f.gate.open(standin[0]+":8080", ""); got.Result != wire.ResultAllowed || len(asked) != 0 {
		t.Errorf("again: %+v", got)
	}
	go func() { opened <- f.gate.open(standin[0]+":8081", "") }()
	<-asked
	answer <- nil
	if got := <-opened; got.Result != wire.ResultDenied {
		t.Errorf("another port, after a no: %+v", got)
	}
}

// On a port where clients show a name, it is read before people are asked, and another name is refused without a question.
func TestAHeldConnectionIsForItsNameAlone(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	f := serve(t, Config{Rules: rulesOf(t), Ask: func(context.Context, Decision) *egress.Rules {
		asked.Add(1)
		return rulesOf(t, "api.example.com")
	}})
	f.resolver.set("api.example.com", "93.184.216.34")
	f.leadsTo("93.184.216.34:443")
	standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0] + ":443"
	if got := f.gate.open(standin, ""); got.Result != wire.ResultVerify || asked.Load() != 0 {
		t.Errorf("%+v", got)
	}
	if got := f.gate.open(standin, "evil.example.com"); got.Result != wire.ResultDenied || asked.Load() != 0 {
		t.Errorf("another name: %+v", got)
	}
	if got := f.gate.open(standin, "api.example.com"); got.Result != wire.ResultAllowed || asked.Load() != 1 {
		t.Errorf("%+v, asked %d times", got, asked.Load())
	}
}

// An allowed name that leads into the host's own networks is refused, as without a question.
func TestAYesIsForPublicAddresses(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t), Ask: func(context.Context, Decision) *egress.Rules { return rulesOf(t, "api.example.com:8080") }})
	f.resolver.set("api.example.com", "10.0.0.7")
	standin := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA))[0]
	if got := f.gate.open(standin+":8080", ""); got.Result != wire.ResultDenied {
		t.Errorf("%+v", got)
	}
	if d := f.last(); d.Reason != egress.ReasonRebinding {
		t.Errorf("%+v", d)
	}
}
