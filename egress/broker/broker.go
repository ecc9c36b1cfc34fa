package broker

import (
	"context"
	"net/netip"
	"os"
	"sync"
	"time"

	"clove.run/clove/egress"
	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// Resolver queries the host's name servers; egress/resolver implements it.
type Resolver interface {
	Lookup(ctx context.Context, name string, qtype uint16) (*dnsmsg.Reply, error)
}

// Namespace makes sockets in the agent's network; netns implements it.
type Namespace interface {
	// DialPort connects to the agent's own loopback.
	DialPort(ctx context.Context, port uint16) (*os.File, error)
	// Flow makes a datagram socket that represents target to the agent.
	Flow(agent, target netip.AddrPort) (*os.File, error)
	// HasClient reports whether the agent still has the socket from which it sends to target; proto is IPPROTO_TCP or IPPROTO_UDP.
	HasClient(proto int, client, target netip.AddrPort) (bool, error)
}

// Listener is a socket on which the gate accepts.
type Listener struct {
	Kind wire.ListenerKind
	Port uint16
	IDs  *wire.IDs // of ListenCalls
	File *os.File
}

// Config is the configuration of one run's broker.
type Config struct {
	Rules     *egress.Rules
	Resolver  Resolver
	Namespace Namespace
	Limits    wire.Limits
	// Listeners are sent to the gate when Serve begins. Serve then closes them: the
	// broker's copies would keep accepting connections after the gate's death.
	Listeners []Listener
	// Socket makes the sockets of outside connections, like socket(2); nil: socket(2) in
	// this process's network namespace.
	Socket func(family, kind int) (int, error)
	// Log receives every decision, Denied the first denial of each target. Many goroutines
	// call them at once, before the answer is sent, so they must be safe for concurrent use
	// and must not block on a disk or a terminal. They must not call the Broker. Either may
	// be nil.
	Log    func(Decision)
	Denied func(Denial)
	// Shadow are rules that are asked too, about what Rules allow, and that decide nothing;
	// nil: none.
	Shadow *egress.Rules
	// Swap gets the connections to some hosts; nil: there is none.
	Swap Swap
	// Ask is called with a connection or a flow that no rule mentions, and may return the rules that are
	// to hold from now on, or for this connection alone (egress.Rules.ForOne); nil leaves it denied. It may take its time, until ctx ends: the agent's
	// connection is held. Then the name is resolved. Many goroutines call it at once. nil: what no rule mentions is denied.
	Ask func(ctx context.Context, d Decision) *egress.Rules
	// Hold is how long a connection is held for Ask, at most wire.HoldMost; 0: wire.HoldMost.
	Hold time.Duration
}

// Broker answers one gate.
type Broker struct {
	config      Config
	published   map[uint16]bool // ports of the agent
	pins        *pins
	people      *people
	connections *connections
	denials     *denials
	shadow      *shadow
	names       *names
	lookups     chan struct{} // one slot for each lookup under way
	ready       chan struct{}
	readyOnce   sync.Once

	// Tests replace these.
	now    func() time.Time
	routed func(netip.Addr) bool
	dial   func(ctx context.Context, network string, to netip.AddrPort) (*os.File, error)
}

// New makes a broker; Serve starts it.
func New(config Config) *Broker {
	outside := ownNetwork
	if config.Socket != nil {
		outside.socket = config.Socket
	}
	b := &Broker{config: config, published: map[uint16]bool{}, denials: newDenials(config.Denied), shadow: newShadow(config.Shadow),
		people: newPeople(config), lookups: make(chan struct{}, maxLookups), ready: make(chan struct{}), routed: outside.routed, dial: outside.dial}
	b.setClock(time.Now)
	for _, l := range config.Listeners {
		if l.Kind == wire.ListenPublish {
			b.published[l.Port] = true
		}
	}
	return b
}

// setClock makes everything that depends on the time; tests call it again with a clock of
// their own.
func (b *Broker) setClock(now func() time.Time) {
	b.now = now
	b.pins = newPins(now)
	b.names = newNames(now)
	b.connections = newConnections(b.config.Limits, b.config.Rules, now)
}

// Ready is closed when the gate has reported that it serves.
func (b *Broker) Ready() <-chan struct{} { return b.ready }

// Replace puts new rules in force. When it returns, every connection and flow that they
// forbid is cut, and pins of names that they deny are removed.
func (b *Broker) Replace(rules *egress.Rules) {
	ended := b.connections.replace(rules)
	b.pins.drop(func(name egress.Name) bool { return rules.Resolve(name).Allowed })
	b.logCut(ended, ReasonReplaced)
}

// reconsider asks people about what no rule mentions, and puts the rules in force that hold now. Rules for this
// connection alone are returned instead.
func (b *Broker) reconsider(ctx context.Context, id uint64, d Decision, v egress.Verdict) (own *egress.Rules) {
	rules := b.people.decide(ctx, id, d, v)
	switch {
	case rules.AreForOne():
		return rules
	case rules != nil:
		b.Replace(rules)
	}
	return nil
}

// Totals are the network figures of a run's record.
type Totals struct {
	RxBytes     int64 // towards the agent, open connections included
	TxBytes     int64
	Connections int64 // and flows, opened
	PeakOpen    int
	Refused     int64    // denials, each counted
	Denials     []Denial // ordered by the first denial of each target
	Shadow      []Denial // what the shadow's rules would have refused, in the same order
}

// Totals may be called at any time.
func (b *Broker) Totals() Totals {
	denials, refused := b.denials.list()
	shadow, _ := b.shadow.list()
	b.connections.mu.Lock()
	defer b.connections.mu.Unlock()
	sum := b.connections.sum()
	return Totals{RxBytes: sum.received, TxBytes: sum.sent, Connections: b.connections.opened,
		PeakOpen: b.connections.peak, Refused: refused, Denials: denials, Shadow: shadow}
}

// log sets d's time and passes it to Log, and a denial to the counts.
func (b *Broker) log(d Decision) {
	d.Time = b.now()
	if b.config.Log != nil {
		b.config.Log(d)
	}
	if d.Outcome == OutcomeDenied {
		b.denials.add(d)
	}
}

// logCut logs connections that the broker cut. It runs without the lock of connections,
// because Log may be slow.
func (b *Broker) logCut(ended []ending, reason string) {
	for _, e := range ended {
		d := e.connection.decision(OutcomeCut, e.verdict)
		d.RxBytes, d.TxBytes = e.bytes.received, e.bytes.sent
		d.Reason = reason
		b.log(d)
	}
}

// decision is the record of outcome for c.
func (c *connection) decision(outcome Outcome, verdict egress.Verdict) Decision {
	d := decisionOn(c.kind, outcome, c.asked, verdict)
	d.Number = c.number
	return d
}

// decisionOn is the record of outcome for the requested connection.
func decisionOn(kind Kind, outcome Outcome, asked egress.Connection, verdict egress.Verdict) Decision {
	// The name that the client showed is what it asked for. Without one, it is the name
	// that allowed the connection.
	name := verdict.Name
	if asked.Shown != "" {
		name = asked.Shown
	}
	return Decision{Kind: kind, Outcome: outcome, Name: string(name), Address: asked.Target, Pinned: asked.Pinned,
		Rule: verdict.Rule, Source: verdict.Source,
		Reason: verdict.Reason, Detail: verdict.Detail, Hint: verdict.Hint}
}
