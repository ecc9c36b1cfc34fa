package broker

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

func TestANameThatIsAllowedIsAnsweredAndPinned(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
	f.resolver.set("api.example.com", "93.184.216.34", "93.184.216.35")
	if got := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA)); !slices.Equal(got, []string{"93.184.216.34", "93.184.216.35"}) {
		t.Errorf("got %v", got)
	}
	if names := f.broker.pins.names(netip.MustParseAddr("93.184.216.35")); !slices.Equal(names, []egress.Name{"api.example.com"}) {
		t.Errorf("pinned to %v", names)
	}
	if d := f.last(); d.Outcome != OutcomeAllowed || d.Kind != KindDNS || d.Name != "api.example.com" || d.Rule != "api.example.com" || d.Source != "--allow" {
		t.Errorf("decision %+v", d)
	}
}

// TestADeniedNameIsNeverAskedFor: the test above is the control: an allowed one is.
func TestADeniedNameIsNeverAskedFor(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com", "deny evil.example.com", "*.example.com")})
	for _, name := range []string{"other.test", "evil.example.com", "EVIL.example.com", "evil.example.com.", "sub.other.test", `a\.example.com`, "",
		"127.1", "xn--a", "a..example.com", "api.example.com\x00.test", "ａpi.example.com"} {
		answer := f.gate.lookup(name, dnsmsg.TypeA)
		if answer.Result != wire.ResultDenied || len(answer.Message) != 0 {
			t.Errorf("%q: %+v", name, answer)
		}
		if d := f.last(); d.Outcome != OutcomeDenied || d.Kind != KindDNS || d.Detail == "" {
			t.Errorf("%q: decision %+v", name, d)
		}
	}
	if asked := f.resolver.questions(); len(asked) != 0 {
		t.Errorf("asked for %q", asked)
	}
}

func TestNamesThatNeverLeave(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "*.example.local", "93.184.216.34:22", "api.example.com")})
	f.resolver.set("api.example.com", "93.184.216.34")
	f.gate.lookup("api.example.com", dnsmsg.TypeA)
	before := len(f.resolver.questions())
	for _, row := range []struct {
		name  string
		qtype uint16
		rcode int
		text  string
	}{
		{"localhost", dnsmsg.TypeA, dnsmsg.RCodeSuccess, "127.0.0.1"},
		{"a.localhost", dnsmsg.TypeAAAA, dnsmsg.RCodeSuccess, "::1"},
		{"localhost", dnsmsg.TypeHTTPS, dnsmsg.RCodeSuccess, ""},
		{"x.invalid", dnsmsg.TypeA, dnsmsg.RCodeNameError, ""},
		{"printer.example.local", dnsmsg.TypeA, dnsmsg.RCodeNameError, ""},
		{"x.onion", dnsmsg.TypeA, dnsmsg.RCodeNameError, ""},
		{"1.0.0.127.in-addr.arpa", dnsmsg.TypePTR, dnsmsg.RCodeSuccess, "localhost."},
		{"34.216.184.93.in-addr.arpa", dnsmsg.TypePTR, dnsmsg.RCodeSuccess, "api.example.com."},
		{"35.216.184.93.in-addr.arpa", dnsmsg.TypePTR, dnsmsg.RCodeNameError, ""},
		{"93.in-addr.arpa", dnsmsg.TypePTR, dnsmsg.RCodeNameError, ""},
		{"8.b.d.0.1.0.0.2.ip6.arpa", dnsmsg.TypePTR, dnsmsg.RCodeNameError, ""},
	} {
		reply := replyOf(t, f.gate.lookup(row.name, row.qtype))
		want := dnsmsg.NewReply(row.name, row.qtype, row.rcode)
		switch row.qtype {
		case dnsmsg.TypePTR:
			if row.text != "" {
				want.WithPTR(localTTL, row.text)
			}
		case dnsmsg.TypeA, dnsmsg.TypeAAAA:
			if row.text != "" {
				want.WithAddresses(localTTL, netip.MustParseAddr(row.text))
			}
		}
		if reply.String() != want.String() {
			t.Errorf("%s: %s, want %s", row.name, reply, want)
		}
	}
	if asked := f.resolver.questions(); len(asked) != before {
		t.Errorf("asked for %q", asked[before:])
	}
}

// TestRebinding: an allowed name has an address that no rule allows. The control is a rule
// that names the address.
func TestRebinding(t *testing.T) {
	t.Parallel()
	host := netip.MustParseAddr("93.184.216.99")
	isHost := func(a netip.Addr) bool { return a == host }
	for _, bad := range []string{"10.0.0.5", "169.254.169.254", "93.184.216.99", "192.168.1.1", "100.64.0.1"} {
		f := serve(t, Config{Rules: rulesWith(t, egress.Config{IsHost: isHost}, "api.example.com")})
		f.resolver.set("api.example.com", bad)
		if answer := f.gate.lookup("api.example.com", dnsmsg.TypeA); answer.Result != wire.ResultDenied {
			t.Errorf("%s: %+v", bad, answer)
		}
		if d := f.last(); d.Outcome != OutcomeDenied || d.Address.Addr().String() != bad || d.Name != "api.example.com" || d.Reason != egress.ReasonRebinding {
			t.Errorf("%s: decision %+v", bad, d)
		}
		if names := f.broker.pins.names(netip.MustParseAddr(bad)); len(names) != 0 {
			t.Errorf("%s is pinned", bad)
		}

		control := serve(t, Config{Rules: rulesWith(t, egress.Config{IsHost: isHost}, "api.example.com", bad)})
		control.resolver.set("api.example.com", bad)
		if got := addresses(t, control.gate.lookup("api.example.com", dnsmsg.TypeA)); !slices.Equal(got, []string{bad}) {
			t.Errorf("control %s: %v", bad, got)
		}
	}
}

func TestOnlyTheBadAddressIsTakenOut(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
	f.resolver.set("api.example.com", "10.0.0.5", "93.184.216.34", "127.0.0.1")
	if got := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA)); !slices.Equal(got, []string{"93.184.216.34"}) {
		t.Errorf("got %v", got)
	}
	if all := f.log(); len(all) != 2 || all[0].Outcome != OutcomeDenied || all[1].Outcome != OutcomeAllowed {
		t.Errorf("decisions %+v", all)
	}
}

// TestWithoutARouteThereIsNoAddress: programs then use the other family.
func TestWithoutARouteThereIsNoAddress(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
	f.network.set(func() { f.network.only4 = true })
	f.resolver.set("api.example.com", "2606:2800::1", "93.184.216.34")
	reply := replyOf(t, f.gate.lookup("api.example.com", dnsmsg.TypeAAAA))
	if reply.RCode() != dnsmsg.RCodeSuccess || !reply.Negative() {
		t.Errorf("got %s", reply)
	}
	if got := addresses(t, f.gate.lookup("api.example.com", dnsmsg.TypeA)); len(got) != 1 {
		t.Errorf("got %v", got)
	}
	if f.broker.Totals().Refused != 0 {
		t.Error("a missing route is counted as a denial")
	}
}

func TestAResolverThatFailsIsNoDenial(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
	f.resolver.change(func() { f.resolver.err = errors.New("no name server answered") })
	if answer := f.gate.lookup("api.example.com", dnsmsg.TypeA); answer.Result != wire.ResultUnreachable {
		t.Errorf("%+v", answer)
	}
	if d := f.last(); d.Outcome != OutcomeUnreachable || d.Reason != ReasonUnresolved || f.broker.Totals().Refused != 0 {
		t.Errorf("decision %+v", d)
	}
}

// TestSlowQuestionsDoNotTakeEverything: beyond maxLookups they fail at once, and connections
// are still made.
func TestSlowQuestionsDoNotTakeEverything(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com", "93.184.216.34")})
	f.leadsTo("93.184.216.34:80")
	block, entered := make(chan struct{}), make(chan struct{}, maxLookups)
	f.resolver.change(func() { f.resolver.block, f.resolver.entered = block, entered })
	var waiting []<-chan wire.Answer
	for range maxLookups {
		w, err := f.gate.begin(wire.Request{Lookup: &wire.Lookup{Name: "api.example.com", Type: dnsmsg.TypeA}})
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, w)
	}
	for range maxLookups {
		<-entered
	}
	if answer := f.gate.lookup("api.example.com", dnsmsg.TypeA); answer.Result != wire.ResultUnreachable {
		t.Errorf("one too many: %+v", answer)
	}
	f.gate.connected("93.184.216.34:80", "")
	close(block)
	for _, w := range waiting {
		replyOf(t, <-w)
	}
}

// TestServiceRecordsLoseWhatNobodyMayUse: the key for an encrypted name, and hints with
// internal addresses. The control is the resolver's message, which has both.
func TestServiceRecordsLoseWhatNobodyMayUse(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
	message := new(dns.Msg)
	message.SetQuestion("api.example.com.", dns.TypeHTTPS)
	message.Response = true
	record, err := dns.NewRR(`api.example.com. 60 IN HTTPS 1 . alpn="h2" ipv4hint="10.0.0.1,93.184.216.34" ech="AEX+DQBB"`)
	if err != nil {
		t.Fatal(err)
	}
	message.Answer = []dns.RR{record}
	packet, err := message.Pack()
	if err != nil {
		t.Fatal(err)
	}
	f.resolver.change(func() { f.resolver.replies = map[string][]byte{"api.example.com": packet} })
	answer := f.gate.lookup("api.example.com", dnsmsg.TypeHTTPS)
	if got := addresses(t, answer); !slices.Equal(got, []string{"93.184.216.34"}) {
		t.Errorf("hints %v", got)
	}
	if control, err := dnsmsg.ParseReply(packet); err != nil || !control.StripECH() || replyOf(t, answer).StripECH() {
		t.Errorf("the key is still there, or never was: %v", err)
	}
	if len(f.broker.pins.names(netip.MustParseAddr("93.184.216.34"))) != 1 || len(f.broker.pins.names(netip.MustParseAddr("10.0.0.1"))) != 0 {
		t.Error("the wrong hints are pinned")
	}
	if all := f.log(); len(all) != 2 || all[0].Address.Addr().String() != "10.0.0.1" {
		t.Errorf("decisions %+v", all)
	}
}

func TestRoutesAreTheKernels(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"127.0.0.1": true, "fe80::1": false} { // link-local, without an interface
		if got := ownNetwork.routed(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
	if unreachable(unix.EMFILE) {
		t.Error("too few descriptors say something of a route")
	}
}

func TestAPrivateAddressInDisguiseIsNoAnswer(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
	f.resolver.set("api.example.com", "::ffff:10.0.0.1", "64:ff9b::a00:1", "fd00::1")
	if answer := f.gate.lookup("api.example.com", dnsmsg.TypeAAAA); answer.Result != wire.ResultDenied {
		t.Errorf("%+v", answer)
	}
	if len(f.broker.pins.byAddr) != 0 {
		t.Error("something is pinned")
	}
}
