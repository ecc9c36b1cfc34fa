package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/packet"

	"clove.run/clove/agent"
)

// deadline ends a test that would hang.
const deadline = 20 * time.Second

// fixture is a broker with fakes around it and real sockets: public addresses lead to servers
// on this machine's loopback.
type fixture struct {
	t        testing.TB
	broker   *Broker
	gate     *fakeGate
	resolver *fakeResolver
	network  *fakeNetwork
	clock    *fakeClock
	served   chan error
	stop     context.CancelFunc

	mu        sync.Mutex // guards decisions
	decisions []Decision
	told      []Denial
}

// lines are rules in words: "deny x" or "x".
func rulesOf(t testing.TB, lines ...string) *egress.Rules {
	t.Helper()
	return rulesWith(t, egress.Config{}, lines...)
}

func rulesWith(t testing.TB, config egress.Config, lines ...string) *egress.Rules {
	t.Helper()
	config.Mode = agent.NetworkAllowlist
	for _, line := range lines {
		const deny = "deny "
		if len(line) > len(deny) && line[:len(deny)] == deny {
			config.Rules = append(config.Rules, agent.EgressRule{Deny: true, Target: line[len(deny):], Source: "--deny"})
		} else {
			config.Rules = append(config.Rules, agent.EgressRule{Target: line, Source: "--allow"})
		}
	}
	rules, err := egress.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

// serve starts a broker with a gate that has received its setup.
func serve(t testing.TB, config Config) *fixture {
	t.Helper()
	f := &fixture{t: t, resolver: &fakeResolver{answers: map[string][]string{}}, network: &fakeNetwork{leads: map[netip.AddrPort]string{}},
		clock: &fakeClock{now: time.Unix(1e9, 0)}, served: make(chan error, 1)}
	config.Resolver = f.resolver
	if config.Namespace == nil {
		config.Namespace = f.network
	}
	config.Log = func(d Decision) { f.mu.Lock(); f.decisions = append(f.decisions, d); f.mu.Unlock() }
	config.Denied = func(d Denial) { f.mu.Lock(); f.told = append(f.told, d); f.mu.Unlock() }
	f.broker = New(config)
	f.broker.setClock(f.clock.Now)
	f.broker.dial = f.network.dial
	f.broker.routed = f.network.routes
	conn, file, err := wire.Pair()
	if err != nil {
		t.Fatal(err)
	}
	end, err := packet.Inherited(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	go func() { f.served <- f.broker.Serve(ctx, conn); close(f.served) }()
	f.gate = newFakeGate(t, &wire.Conn{Conn: end})
	t.Cleanup(f.end)
	return f
}

// end waits until Serve has returned. Like a real gate, the fake one ends when the broker
// does; otherwise Serve would wait for its last messages.
func (f *fixture) end() {
	f.stop()
	<-f.gate.done
	f.gate.conn.Close()
	f.result()
	closeFiles(f.gate.files) // those that a test has closed stay closed
}

func (f *fixture) result() error {
	f.t.Helper()
	select {
	case err := <-f.served:
		return err
	case <-time.After(deadline):
		f.t.Fatal("Serve does not return")
		return nil
	}
}

// last returns the last decision, which must exist.
func (f *fixture) last() Decision {
	f.t.Helper()
	all := f.log()
	if len(all) == 0 {
		f.t.Fatal("no decision")
	}
	return all[len(all)-1]
}

func (f *fixture) log() []Decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.decisions)
}

// leadsTo makes target a server and returns what it accepts, open until the end of the test.
func (f *fixture) leadsTo(target string) <-chan net.Conn {
	f.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	accepted, done := make(chan net.Conn, 64), make(chan struct{})
	go func() {
		defer close(done)
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			defer conn.Close()
			accepted <- conn
		}
	}()
	f.t.Cleanup(func() { listener.Close(); <-done })
	f.network.lead(netip.MustParseAddrPort(target), listener.Addr().String())
	return accepted
}

// fakeClock moves only when a test moves it.
type fakeClock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// addresses returns those of a DNS answer.
func addresses(t testing.TB, answer wire.Answer) []string {
	t.Helper()
	reply := replyOf(t, answer)
	var found []string
	for _, a := range reply.Addresses() {
		found = append(found, a.Addr.String())
	}
	return found
}

func replyOf(t testing.TB, answer wire.Answer) *dnsmsg.Reply {
	t.Helper()
	if answer.Result != wire.ResultAllowed {
		t.Fatalf("%+v; want an answer", answer)
	}
	reply, err := dnsmsg.ParseReply(answer.Message)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// reset waits for the peer's connection to be reset.
func reset(t testing.TB, peer net.Conn) {
	t.Helper()
	peer.SetReadDeadline(time.Now().Add(deadline))
	if _, err := peer.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the peer sees %v, want a reset", err)
	}
}

// alive checks that a byte arrives at the other end.
func alive(t testing.TB, from io.Writer, to net.Conn) {
	t.Helper()
	if _, err := from.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	to.SetReadDeadline(time.Now().Add(deadline))
	if n, err := to.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
}
