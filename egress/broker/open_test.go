package broker

import (
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

func TestANameRuleOnTheWebIsVerified(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "api.example.com", "deny evil.example.com")})
	f.resolver.set("api.example.com", "93.184.216.34")
	servers := f.leadsTo("93.184.216.34:443")
	if answer := f.gate.open("93.184.216.34:443", "api.example.com"); answer.Result != wire.ResultDenied {
		t.Errorf("not looked up: %+v", answer)
	}
	f.gate.lookup("api.example.com", dnsmsg.TypeA)
	if answer := f.gate.open("93.184.216.34:443", ""); answer.Result != wire.ResultVerify || len(answer.Files) != 0 || answer.Number != 0 {
		t.Errorf("first question: %+v", answer)
	}
	for _, other := range []string{"evil.example.com", "other.test", "10.0.0.1", "a b"} {
		if answer := f.gate.open("93.184.216.34:443", other); answer.Result != wire.ResultDenied || len(answer.Files) != 0 {
			t.Errorf("as %s: %+v", other, answer)
		}
	}
	nothing := wire.Open{Target: netip.MustParseAddrPort("93.184.216.34:443"), Shown: wire.ShownNothing}
	if answer := f.gate.ask(wire.Request{Open: &nothing}); answer.Result != wire.ResultDenied {
		t.Errorf("as nothing: %+v", answer)
	}
	if dials := f.network.dials(); len(dials) != 0 {
		t.Fatalf("dialled %v for what was denied", dials)
	}
	answer, conn := f.gate.connected("93.184.216.34:443", "API.Example.COM.")
	alive(t, conn, <-servers)
	if answer.Number == 0 {
		t.Error("no number")
	}
	if d := f.last(); d.Outcome != OutcomeAllowed || d.Kind != KindTCP || d.Name != "api.example.com" || d.Address.String() != "93.184.216.34:443" || d.Number != answer.Number {
		t.Errorf("decision %+v", d)
	}
}

// TestAPinIsNeededAndExpires: the control are the connections before it expires.
func TestAPinIsNeededAndExpires(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "db.example.com:5432")})
	f.resolver.set("db.example.com", "93.184.216.34")
	f.leadsTo("93.184.216.34:5432")
	if answer := f.gate.open("93.184.216.34:5432", ""); answer.Result != wire.ResultDenied {
		t.Errorf("before the look-up: %+v", answer)
	}
	f.gate.lookup("db.example.com", dnsmsg.TypeA)
	f.gate.connected("93.184.216.34:5432", "")
	f.clock.advance(pinLeast + pinGrace)
	f.gate.connected("93.184.216.34:5432", "")
	f.clock.advance(time.Second)
	if answer := f.gate.open("93.184.216.34:5432", ""); answer.Result != wire.ResultDenied {
		t.Errorf("after it has expired: %+v", answer)
	}
	f.gate.lookup("db.example.com", dnsmsg.TypeA)
	f.gate.connected("93.184.216.34:5432", "")
	if answer := f.gate.open("93.184.216.34:5433", ""); answer.Result != wire.ResultDenied {
		t.Errorf("another port: %+v", answer)
	}
}

func TestTheOtherAddressesOfANameAreTried(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "db.example.com:5432")})
	f.resolver.set("db.example.com", "93.184.216.34", "93.184.216.35")
	servers := f.leadsTo("93.184.216.35:5432")
	f.gate.lookup("db.example.com", dnsmsg.TypeA)
	answer, conn := f.gate.connected("93.184.216.34:5432", "") // the network refuses it
	alive(t, conn, <-servers)
	f.gate.closed(answer.Number, 0, 1)
	f.network.lead(netip.MustParseAddrPort("93.184.216.34:5432"), blackhole) // answers nothing
	_, conn = f.gate.connected("93.184.216.34:5432", "")
	alive(t, conn, <-servers)
	if d := f.last(); d.Address.String() != "93.184.216.35:5432" {
		t.Errorf("the decision names %s", d.Address)
	}
	want := []string{"93.184.216.34:5432", "93.184.216.35:5432"}
	for i, to := range f.network.dials() {
		if to.String() != want[i%2] {
			t.Errorf("dial %d to %s", i, to)
		}
	}
}

// TestAPinnedAddressIsCheckedWhenItIsDialled: it has become an address of this host. In the
// control it has not.
func TestAPinnedAddressIsCheckedWhenItIsDialled(t *testing.T) {
	t.Parallel()
	for _, becomes := range []bool{false, true} {
		var own atomic.Pointer[netip.Addr]
		isHost := func(addr netip.Addr) bool { mine := own.Load(); return mine != nil && addr == *mine }
		f := serve(t, Config{Rules: rulesWith(t, egress.Config{IsHost: isHost}, "db.example.com:5432")})
		f.resolver.set("db.example.com", "93.184.216.34", "93.184.216.35")
		f.leadsTo("93.184.216.35:5432")
		f.gate.lookup("db.example.com", dnsmsg.TypeA)
		if becomes {
			mine := netip.MustParseAddr("93.184.216.35")
			own.Store(&mine)
		}
		answer := f.gate.open("93.184.216.34:5432", "")
		dialled := slices.Contains(f.network.dials(), netip.MustParseAddrPort("93.184.216.35:5432"))
		if dialled == becomes || (answer.Result == wire.ResultAllowed) == becomes {
			t.Errorf("becomes the host's %v: dialled %v, %+v", becomes, dialled, answer)
		}
		closeFiles(answer.Files)
	}
}

func TestADeniedNameIsFoundUnderAnAddressRule(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.0/24", "deny evil.example.com")})
	f.leadsTo("93.184.216.34:443")
	if answer := f.gate.open("93.184.216.34:443", ""); answer.Result != wire.ResultVerifyDeny {
		t.Errorf("first question: %+v", answer)
	}
	if answer := f.gate.open("93.184.216.34:443", "evil.example.com"); answer.Result != wire.ResultDenied || !strings.Contains(answer.Rule, "evil.example.com") || answer.Hint == "" {
		t.Errorf("evil: %+v", answer)
	}
	f.gate.connected("93.184.216.34:443", "other.test")
	nothing := wire.Open{Target: netip.MustParseAddrPort("93.184.216.34:443"), Shown: wire.ShownNothing}
	answer := f.gate.ask(wire.Request{Open: &nothing})
	closeFiles(answer.Files)
	if answer.Result != wire.ResultAllowed {
		t.Errorf("nothing: %+v", answer)
	}
}

// TestAHostPortIsOnePortOfTheHost dials real loopback servers of both families, as in
// production.
func TestAHostPortIsOnePortOfTheHost(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Skipf("this machine has no %s: %v", address, err)
		}
		defer listener.Close()
		other, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		port := listener.Addr().(*net.TCPAddr).AddrPort().Port()
		target := netip.AddrPortFrom(hostLoopback, port).String()
		closed := serve(t, Config{Rules: rulesOf(t, "api.example.com")})
		if answer := closed.gate.open(target, ""); answer.Result != wire.ResultDenied || closed.last().Kind != KindHostPort {
			t.Errorf("without --host-port: %+v", answer)
		}
		f := serve(t, Config{Rules: rulesWith(t, egress.Config{HostPorts: []uint16{port}})})
		_, conn := f.gate.connected(target, "")
		server, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		alive(t, conn, server)
		for _, wrong := range []string{other.Addr().String(), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port).String(), netip.AddrPortFrom(netip.IPv6Loopback(), port).String()} {
			if answer := f.gate.open(wrong, ""); answer.Result != wire.ResultDenied {
				t.Errorf("%s: %+v", wrong, answer)
			}
		}
	}
}

func TestADialThatFailsIsNoDenial(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.34", "10.0.0.1")})
	if answer := f.gate.open("93.184.216.34:80", ""); answer.Result != wire.ResultUnreachable {
		t.Errorf("%+v", answer)
	}
	if d := f.last(); d.Outcome != OutcomeUnreachable || d.Reason != ReasonUnreachable || d.Detail == "" || f.broker.Totals().Refused != 0 {
		t.Errorf("decision %+v", d)
	}
	if answer := f.gate.open("93.184.216.34:0", ""); answer.Result != wire.ResultDenied {
		t.Errorf("port 0: %+v", answer)
	}
}
