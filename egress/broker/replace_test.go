package broker

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// TestNewRulesCutWhatTheyForbid: the peers see the reset. The control is a connection that is
// still allowed, and continues.
func TestNewRulesCutWhatTheyForbid(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "a.example.com", "b.example.com", "93.184.217.0/24:22")})
	f.resolver.set("a.example.com", "93.184.216.34")
	f.resolver.set("b.example.com", "93.184.216.34") // one address, two names
	web, ssh := f.leadsTo("93.184.216.34:443"), f.leadsTo("93.184.217.1:22")
	f.gate.lookup("a.example.com", dnsmsg.TypeA)
	f.gate.lookup("b.example.com", dnsmsg.TypeA)
	_, a := f.gate.connected("93.184.216.34:443", "a.example.com")
	aPeer := <-web
	answer, b := f.gate.connected("93.184.216.34:443", "b.example.com")
	bPeer := <-web
	_, c := f.gate.connected("93.184.217.1:22", "")
	cPeer := <-ssh
	b.Write(make([]byte, 100))
	bPeer.Read(make([]byte, 100))

	f.broker.Replace(rulesOf(t, "a.example.com", "93.184.217.0/24:22"))
	reset(t, bPeer)
	alive(t, a, aPeer)
	alive(t, c, cPeer)
	d := f.last()
	if d.Outcome != OutcomeCut || d.Name != "b.example.com" || d.Number != answer.Number || d.TxBytes != 100 || d.Reason != ReasonReplaced || d.Detail == "" {
		t.Errorf("decision %+v", d)
	}
	if len(f.broker.pins.addresses("b.example.com")) != 0 || len(f.broker.pins.addresses("a.example.com")) != 1 {
		t.Error("the wrong pins are gone")
	}
	f.gate.closed(answer.Number, 0, 100) // the gate notices, and may report it

	f.broker.Replace(rulesOf(t, "a.example.com", "deny 93.184.217.1"))
	reset(t, cPeer)
	alive(t, a, aPeer)
	if answer := f.gate.open("93.184.217.1:22", ""); answer.Result != wire.ResultDenied {
		t.Errorf("a new connection: %+v", answer)
	}
	if answer := f.gate.lookup("b.example.com", dnsmsg.TypeA); answer.Result != wire.ResultDenied {
		t.Errorf("a new look-up: %+v", answer)
	}
}

// TestAnAddressOutlivesNoRule: once a name is denied, a program cannot use the address that it
// knows, not even when the name is allowed again, until it resolves the name again. The
// control is a name that stays allowed.
func TestAnAddressOutlivesNoRule(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "db.example.com:5432", "other.example.com:5432")})
	f.resolver.set("db.example.com", "93.184.216.34")
	f.resolver.set("other.example.com", "93.184.216.35")
	open := func(name, target string) (net.Conn, net.Conn) {
		peers := f.leadsTo(target)
		f.gate.lookup(name, dnsmsg.TypeA)
		_, conn := f.gate.connected(target, "")
		return conn, <-peers
	}
	_, db := open("db.example.com", "93.184.216.34:5432")
	other, otherPeer := open("other.example.com", "93.184.216.35:5432")
	verdict := func(target string) wire.Result { return f.gate.open(target, "").Result }

	f.broker.Replace(rulesOf(t, "*.example.com:5432", "deny db.example.com"))
	reset(t, db)
	if got := verdict("93.184.216.34:5432"); got != wire.ResultDenied {
		t.Errorf("by the address that it had: %v", got)
	}
	if got := verdict("93.184.216.35:5432"); got != wire.ResultAllowed {
		t.Errorf("control: what stays allowed: %v", got)
	}
	f.broker.Replace(rulesOf(t, "*.example.com:5432"))
	if got := verdict("93.184.216.34:5432"); got != wire.ResultDenied {
		t.Errorf("allowed again, before it was looked up again: %v", got)
	}
	f.gate.lookup("db.example.com", dnsmsg.TypeA)
	if got := verdict("93.184.216.34:5432"); got != wire.ResultAllowed {
		t.Errorf("allowed and looked up again: %v", got)
	}
	alive(t, other, otherPeer) // the control
}

// TestAConnectionThatShowedNoNameIsCutWhenNamesMatter: it might be to the name that is denied
// now.
func TestAConnectionThatShowedNoNameIsCutWhenNamesMatter(t *testing.T) {
	t.Parallel()
	f := serve(t, Config{Rules: rulesOf(t, "93.184.216.0/24")})
	web := f.leadsTo("93.184.216.34:443")
	f.gate.connected("93.184.216.34:443", "")
	unknown := <-web
	_, known := f.gate.connected("93.184.216.34:443", "good.test")
	knownPeer := <-web
	f.broker.Replace(rulesOf(t, "93.184.216.0/24", "deny evil.test"))
	reset(t, unknown)
	alive(t, known, knownPeer)
}

// TestRulesThatAreReplacedDuringADial: the new rules apply to it: a forbidden connection is
// closed and never sent to the gate. The control are rules that allow it.
func TestRulesThatAreReplacedDuringADial(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b := New(Config{Rules: rulesOf(t, "93.184.216.34:22")})
	for _, row := range []struct {
		rules string
		want  wire.Result
	}{{"93.184.216.0/24:22", wire.ResultAllowed}, {"93.184.217.0/24:22", wire.ResultDenied}} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		peer, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		socket, err := fileOf(conn)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if reason := b.connections.reserve(); reason != "" {
			t.Fatal(reason)
		}
		b.Replace(rulesOf(t, row.rules))
		c := &connection{kind: KindTCP}
		c.asked.Proto, c.asked.Target = egress.TCP, netip.MustParseAddrPort("93.184.216.34:22")
		answer := b.hand(c, socket)
		if answer.Result != row.want {
			t.Errorf("%s: %+v", row.rules, answer)
		}
		if row.want == wire.ResultAllowed {
			alive(t, socket, peer)
			socket.Close()
			continue
		}
		peer.SetReadDeadline(time.Now().Add(deadline))
		if _, err := peer.Read(make([]byte, 1)); err != io.EOF { // no process has the other end open
			t.Errorf("the peer sees %v", err)
		}
	}
	if b.connections.dialling != 0 || len(b.connections.open) != 1 {
		t.Errorf("%d dialling, %d open", b.connections.dialling, len(b.connections.open))
	}
	b.connections.end()
}

// TestCuttingResets: whichever process has the socket open too, with data in flight.
func TestCuttingResets(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Skipf("this machine has no %s: %v", address, err)
		}
		defer listener.Close()
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		peer, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		fd, err := duplicate(conn.(*net.TCPConn))
		if err != nil {
			t.Fatal(err)
		}
		c := &connection{fd: fd, closes: new(sync.WaitGroup)}
		alive(t, conn, peer)
		c.cut()
		reset(t, peer)
		if _, err := conn.Write([]byte{1}); err == nil {
			t.Error("the gate's end still sends")
		}
		if c.fd >= 0 || c.last.sent != 1 {
			t.Errorf("afterwards %+v", c)
		}
		c.cut() // a second call does nothing
	}
}
