package broker

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// deadline ends a test that would wait for ever.
const deadline = 20 * time.Second

// fixture is a broker with everything around it fake but the sockets: public
// addresses lead to servers on this machine's loopback.
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

// lines are rules as words: "deny x" or "x".
func rulesOf(t testing.TB, lines ...string) *egress.Rules {
	t.Helper()
	return rulesWith(t, egress.Config{}, lines...)
}

func rulesWith(t testing.TB, config egress.Config, lines ...string) *egress.Rules {
	t.Helper()
	config.Mode = egress.ModeAllowlist
	for _, line := range lines {
		const deny = "deny "
		if len(line) > len(deny) && line[:len(deny)] == deny {
			config.Lines = append(config.Lines, egress.Line{Deny: true, Target: line[len(deny):], Source: "--deny"})
		} else {
			config.Lines = append(config.Lines, egress.Line{Target: line, Source: "--allow"})
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
	end, err := wire.NewConn(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	go func() { f.served <- f.broker.Serve(ctx, conn); close(f.served) }()
	f.gate = newFakeGate(t, end)
	t.Cleanup(f.end)
	return f
}

// end waits until Serve has returned.
func (f *fixture) end() {
	f.stop()
	f.result()
	f.gate.conn.Close()
	<-f.gate.done
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

// last is the last decision, which must be there.
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

// leadsTo makes target a server that echoes; it returns its accepted ends.
func (f *fixture) leadsTo(target string) <-chan net.Conn {
	f.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { listener.Close() })
	accepted := make(chan net.Conn, 4096)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(accepted)
				for conn := range accepted {
					conn.Close()
				}
				return
			}
			accepted <- conn
		}
	}()
	f.network.lead(netip.MustParseAddrPort(target), listener.Addr().String())
	return accepted
}

// fakeClock moves when it is told to.
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

// fakeResolver answers from a table and counts what it is asked.
type fakeResolver struct {
	mu      sync.Mutex // guards the fields below
	answers map[string][]string
	ttl     time.Duration
	asked   []string
	err     error
	block   chan struct{} // where set, answers wait for it
	entered chan struct{} // and this is told that one waits
}

func (r *fakeResolver) set(name string, addrs ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[name] = addrs
}

// change changes the fields under the lock.
func (r *fakeResolver) change(how func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	how()
}

func (r *fakeResolver) questions() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

func (r *fakeResolver) Lookup(ctx context.Context, name string, qtype uint16) (*dnsmsg.Reply, error) {
	r.mu.Lock()
	r.asked = append(r.asked, name)
	addrs, known := r.answers[name]
	block, entered, err, ttl := r.block, r.entered, r.err, r.ttl
	r.mu.Unlock()
	if block != nil {
		entered <- struct{}{}
		select {
		case <-block:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	if !known {
		return dnsmsg.NewReply(name, qtype, dnsmsg.RCodeNameError), nil
	}
	reply := dnsmsg.NewReply(name, qtype, dnsmsg.RCodeSuccess)
	for _, addr := range addrs {
		reply.WithAddresses(ttl, netip.MustParseAddr(addr))
	}
	return reply, nil
}

// fakeNetwork is the outside and the agent's namespace.
type fakeNetwork struct {
	mu     sync.Mutex // guards the fields below
	leads  map[netip.AddrPort]string
	dialed []netip.AddrPort
	inside string // where DialPort leads
	only4  bool   // there is no route for IPv6
	flows  []netip.AddrPort
}

func (n *fakeNetwork) lead(target netip.AddrPort, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.leads[target] = to
}

// set changes the fields under the lock.
func (n *fakeNetwork) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (n *fakeNetwork) routes(addr netip.Addr) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return addr.Is4() || !n.only4
}

func (n *fakeNetwork) dials() []netip.AddrPort {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.dialed)
}

const blackhole = "blackhole" // as a lead: nothing answers

// dial never leaves this machine: loopback is dialled as the product does it,
// what leads nowhere is refused.
func (n *fakeNetwork) dial(ctx context.Context, network string, to netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, to)
	lead := n.leads[to]
	n.mu.Unlock()
	switch {
	case lead == blackhole:
		<-ctx.Done()
		return nil, ctx.Err()
	case lead != "":
		return new(net.Dialer).DialContext(ctx, network[:3], lead)
	case to.Addr().IsLoopback():
		return dial(ctx, network, to)
	}
	return nil, unix.ECONNREFUSED
}

func (n *fakeNetwork) DialPort(ctx context.Context, _ uint16) (*os.File, error) {
	n.mu.Lock()
	inside := n.inside
	n.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", inside)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return fileOf(conn)
}

func (n *fakeNetwork) Flow(agent, target netip.AddrPort) (*os.File, error) {
	n.mu.Lock()
	n.flows = append(n.flows, agent, target)
	n.mu.Unlock()
	conn, err := net.Dial("udp4", "127.0.0.1:9")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return fileOf(conn)
}

// fakeGate asks what it is told to.
type fakeGate struct {
	t     testing.TB
	conn  *wire.Conn
	setup wire.Answer
	done  chan struct{} // closed when the channel is

	mu      sync.Mutex // guards the fields below
	id      uint64
	waiting map[uint64]chan wire.Answer
}

func newFakeGate(t testing.TB, conn *wire.Conn) *fakeGate {
	t.Helper()
	g := &fakeGate{t: t, conn: conn, done: make(chan struct{}), waiting: map[uint64]chan wire.Answer{}}
	setup, err := conn.ReceiveAnswer()
	if err != nil || setup.Setup == nil {
		t.Fatalf("%+v, %v; want the setup", setup, err)
	}
	g.setup = setup
	t.Cleanup(func() { closeFiles(setup.Files) })
	go g.receive()
	return g
}

func (g *fakeGate) receive() {
	defer close(g.done)
	for {
		answer, err := g.conn.ReceiveAnswer()
		if err != nil {
			return
		}
		g.mu.Lock()
		waiting := g.waiting[answer.ID]
		delete(g.waiting, answer.ID)
		g.mu.Unlock()
		waiting <- answer
	}
}

var errNoAnswer = errors.New("the channel ended")

// begin sends without waiting.
func (g *fakeGate) begin(r wire.Request) (<-chan wire.Answer, error) {
	waiting := make(chan wire.Answer, 1)
	g.mu.Lock()
	g.id++
	r.ID = g.id
	g.waiting[r.ID] = waiting
	g.mu.Unlock()
	return waiting, g.conn.SendRequest(r)
}

func (g *fakeGate) try(r wire.Request) (wire.Answer, error) {
	waiting, err := g.begin(r)
	if err != nil {
		return wire.Answer{}, err
	}
	select {
	case answer := <-waiting:
		return answer, nil
	case <-g.done:
		return wire.Answer{}, errNoAnswer
	case <-time.After(deadline):
		return wire.Answer{}, errors.New("no answer in time")
	}
}

func (g *fakeGate) ask(r wire.Request) wire.Answer {
	g.t.Helper()
	answer, err := g.try(r)
	if err != nil {
		g.t.Fatalf("%+v: %v", r, err)
	}
	return answer
}

func (g *fakeGate) lookup(name string, qtype uint16) wire.Answer {
	g.t.Helper()
	return g.ask(wire.Request{Lookup: &wire.Lookup{Name: name, Type: qtype}})
}

func (g *fakeGate) open(target, name string) wire.Answer {
	g.t.Helper()
	o := wire.Open{Target: netip.MustParseAddrPort(target), Name: name}
	if name != "" {
		o.Shown = wire.ShownTLS
	}
	return g.ask(wire.Request{Open: &o})
}

// connected is open that must bring a socket.
func (g *fakeGate) connected(target, name string) (wire.Answer, net.Conn) {
	g.t.Helper()
	answer := g.open(target, name)
	if answer.Verdict != wire.VerdictAllowed || len(answer.Files) != 1 {
		g.t.Fatalf("%s as %q: %+v", target, name, answer)
	}
	return answer, g.socket(answer.Files[0])
}

func (g *fakeGate) socket(file *os.File) net.Conn {
	g.t.Helper()
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		g.t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(deadline))
	g.t.Cleanup(func() { conn.Close() })
	return conn
}

func (g *fakeGate) tell(r wire.Request) {
	g.t.Helper()
	if err := g.conn.SendRequest(r); err != nil {
		g.t.Fatal(err)
	}
}

// closed tells the end of a connection and waits until it is known: answers to
// later requests come after.
func (g *fakeGate) closed(number uint64, rx, tx int64) {
	g.t.Helper()
	g.tell(wire.Request{Closed: &wire.Closed{Number: number, RxBytes: rx, TxBytes: tx}})
	g.lookup("localhost", dnsmsg.TypeA)
}

// addresses are those of a DNS answer.
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
	if answer.Verdict != wire.VerdictAllowed {
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

// alive sees one byte go from end to end.
func alive(t testing.TB, from, to net.Conn) {
	t.Helper()
	if _, err := from.Write([]byte{'x'}); err != nil {
		t.Fatal(err)
	}
	to.SetReadDeadline(time.Now().Add(deadline))
	if n, err := to.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("%d bytes, %v", n, err)
	}
}
