package gate

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/egress/wire"
)

const (
	// flowEarly is how many datagrams of one flow are kept until the broker has answered.
	flowEarly = 8
	// earlyBytes bounds them for all flows together. Otherwise an agent that keeps the
	// broker busy could make the gate hold 512 KiB for each of a thousand flows.
	earlyBytes = 1 << 20
	// denialMemory is how long a denied flow is not asked about again: a flood to one
	// target must not become a flood of requests.
	denialMemory  = time.Second
	denialEntries = 4096
)

// pair identifies a flow.
type pair struct{ agent, target netip.AddrPort }

// flows are the UDP flows that are relayed or for which an answer is pending.
type flows struct {
	broker   *broker
	limits   *limits
	refusals *refusals
	early    atomic.Int64 // bytes kept, see earlyBytes

	mu     sync.Mutex // guards the fields below
	open   map[pair]*flow
	denied map[pair]time.Time
}

func newFlows(b *broker, l *limits, r *refusals) *flows {
	return &flows{broker: b, limits: l, refusals: r, open: map[pair]*flow{}, denied: map[pair]time.Time{}}
}

// flow relays between one socket of the agent and one target. The first datagram of a pair
// makes it (flows.of), and datagrams are kept (early) until the broker has answered with two
// connected sockets. From then on the kernel delivers the agent's datagrams to the inside
// one, and serveFlows sees no more of this pair. A flow ends when it is idle.
type flow struct {
	pair
	traffic  traffic
	answered atomic.Bool
	began    time.Time    // when the relay began
	last     atomic.Int64 // nanoseconds from began to the last datagram

	number atomic.Uint64 // the broker's number; 0 after its end was reported

	waiting *atomic.Int64 // flows.early

	mu      sync.Mutex   // guards the fields below
	early   [][]byte     // datagrams that came before outside was known
	outside *net.UDPConn // nil until allowed
	over    bool         // no datagram is kept any more
}

// serveFlows handles datagrams that no flow's own socket receives: the first of each flow.
func (s *server) serveFlows(conn *net.UDPConn) {
	buffer := make([]byte, datagramBytes)
	s.receiveAll(conn, buffer, func(d datagram) {
		// One to loopback was sent to the gate's own socket, not through it.
		if !d.to.Addr().IsLoopback() {
			s.flows.datagram(pair{unmap(d.from), d.to}, buffer[:d.bytes])
		}
	})
}

// datagram passes a datagram to its flow, and begins the flow if it is the first.
func (a *flows) datagram(p pair, data []byte) {
	f, fresh := a.of(p)
	if f == nil {
		return
	}
	if outside := f.wait(data); outside != nil {
		_ = a.pass(f, outside, data, &f.traffic.tx) // serveFlow notices the same error and ends the flow
	}
	if fresh {
		go func() {
			defer a.limits.release()
			defer a.forget(p)
			a.serve(f)
		}()
	}
}

// wait keeps a datagram until the flow is allowed, or returns the socket to send it to now.
// Beyond flowEarly and earlyBytes it is dropped, as UDP permits.
func (f *flow) wait(data []byte) *net.UDPConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || len(f.early) == flowEarly {
		// nil before an answer and after a denial: then the datagram is dropped.
		return f.outside
	}
	size := int64(len(data))
	if f.waiting.Add(size) > earlyBytes {
		f.waiting.Add(-size)
		return nil
	}
	f.early = append(f.early, append([]byte(nil), data...))
	return nil
}

// endWait returns the datagrams that were kept. Later ones go to outside; nil drops them.
func (f *flow) endWait(outside *net.UDPConn) [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	early := f.early
	for _, data := range early {
		f.waiting.Add(-int64(len(data)))
	}
	f.early, f.outside, f.over = nil, outside, true
	return early
}

// flowOf finds the flow of p or makes it; nil if it is denied or limited.
func (a *flows) of(p pair) (f *flow, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f := a.open[p]; f != nil {
		return f, false
	}
	if since, ok := a.denied[p]; ok && time.Since(since) < denialMemory {
		return nil, false
	}
	if reason := a.limits.admit(); reason != "" {
		a.refusals.udp(p.target, reason)
		return nil, false
	}
	f = &flow{pair: p, waiting: &a.early}
	a.open[p] = f
	return f, true
}

// reportEnd reports the end of f to the broker, once; the broker never uses the number 0.
func (a *flows) reportEnd(f *flow) {
	a.broker.closed(f.number.Swap(0), f.traffic.rx.Load(), f.traffic.tx.Load())
}

// reportFlows is the gate's last message. UDP flows have no end of their own, and only the
// gate knows the bytes of those that are still open.
func (a *flows) reportOpen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.open {
		a.reportEnd(f)
	}
}

// forget ends a flow. A later datagram of the same pair begins a new one, with a new
// decision.
func (a *flows) forget(p pair) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, p)
}

// deny remembers a denied flow. The map is cleared when full; the cost is one more request
// for each flow.
func (a *flows) deny(p pair) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.denied) >= denialEntries {
		clear(a.denied)
	}
	a.denied[p] = time.Now()
}

// serveFlow is the whole life of a flow; it runs in a goroutine of its own until the flow is idle.
func (a *flows) serve(f *flow) {
	defer f.endWait(nil) // for a flow that is not allowed
	answer, err := a.broker.askFor(wire.Request{Flow: &wire.Flow{Agent: f.agent, Target: f.target}}, &client{agent: f.agent, target: f.target})
	if err != nil || answer.Result != wire.ResultAllowed {
		closeFiles(answer.Files)
		// No answer counts as a denial too, so that a flood is not asked about again at
		// once.
		a.deny(f.pair)
		return
	}
	f.number.Store(answer.Number)
	defer a.reportEnd(f)
	outside, inside, err := twoSockets(answer.Files)
	if err != nil {
		a.deny(f.pair)
		return
	}
	a.relay(f, outside, inside)
}

// twoSockets turns an answer's descriptors into the flow's sockets.
func twoSockets(files []*os.File) (outside, inside *net.UDPConn, err error) {
	defer closeFiles(files)
	if len(files) != 2 {
		return nil, nil, errors.New("an answer without its two sockets")
	}
	if outside, err = udpSocket(files[0]); err != nil {
		return nil, nil, err
	}
	if inside, err = udpSocket(files[1]); err != nil {
		outside.Close()
		return nil, nil, err
	}
	return outside, inside, nil
}

// udpSocket checks the socket's type: the descriptor comes from another process.
func udpSocket(file *os.File) (*net.UDPConn, error) {
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	udp, ok := conn.(*net.UDPConn)
	if !ok {
		conn.Close()
		return nil, errors.New("an answer with a socket that is not UDP")
	}
	return udp, nil
}
