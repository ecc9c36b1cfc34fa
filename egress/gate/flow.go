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
	early atomic.Int64 // bytes kept, see earlyBytes

	mu     sync.Mutex // guards the fields below
	open   map[pair]*flow
	denied map[pair]time.Time
}

func newFlows() *flows {
	return &flows{open: map[pair]*flow{}, denied: map[pair]time.Time{}}
}

// flow relays between one socket of the agent and one target. The first datagram of a pair
// makes it (flowOf), and datagrams are kept (early) until the broker has answered with two
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
			s.datagram(pair{unmap(d.from), d.to}, buffer[:d.bytes])
		}
	})
}

// datagram passes a datagram to its flow, and begins the flow if it is the first.
func (s *server) datagram(p pair, data []byte) {
	f, fresh := s.flowOf(p)
	if f == nil {
		return
	}
	if outside := f.wait(data); outside != nil {
		_ = s.pass(f, outside, data, &f.traffic.tx) // serveFlow notices the same error and ends the flow
	}
	if fresh {
		go func() {
			defer s.limits.release()
			defer s.forget(p)
			s.serveFlow(f)
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
func (s *server) flowOf(p pair) (f *flow, fresh bool) {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	if f := s.flows.open[p]; f != nil {
		return f, false
	}
	if since, ok := s.flows.denied[p]; ok && time.Since(since) < denialMemory {
		return nil, false
	}
	if reason := s.limits.admit(); reason != "" {
		s.refusals.udp(p.target, reason)
		return nil, false
	}
	f = &flow{pair: p, waiting: &s.flows.early}
	s.flows.open[p] = f
	return f, true
}

// reportEnd reports the end of f to the broker, once; the broker never uses the number 0.
func (s *server) reportEnd(f *flow) {
	s.broker.closed(f.number.Swap(0), f.traffic.rx.Load(), f.traffic.tx.Load())
}

// reportFlows is the gate's last message. UDP flows have no end of their own, and only the
// gate knows the bytes of those that are still open.
func (s *server) reportFlows() {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	for _, f := range s.flows.open {
		s.reportEnd(f)
	}
}

// forget ends a flow. A later datagram of the same pair begins a new one, with a new
// decision.
func (s *server) forget(p pair) {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	delete(s.flows.open, p)
}

// deny remembers a denied flow. The map is cleared when full; the cost is one more request
// for each flow.
func (s *server) deny(p pair) {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	if len(s.flows.denied) >= denialEntries {
		clear(s.flows.denied)
	}
	s.flows.denied[p] = time.Now()
}

// serveFlow is the whole life of a flow; it runs in a goroutine of its own until the flow is idle.
func (s *server) serveFlow(f *flow) {
	defer f.endWait(nil) // for a flow that is not allowed
	answer, err := s.broker.ask(wire.Request{Flow: &wire.Flow{Agent: f.agent, Target: f.target}})
	if err != nil || answer.Result != wire.ResultAllowed {
		closeFiles(answer.Files)
		// No answer counts as a denial too, so that a flood is not asked about again at
		// once.
		s.deny(f.pair)
		return
	}
	f.number.Store(answer.Number)
	defer s.reportEnd(f)
	outside, inside, err := twoSockets(answer.Files)
	if err != nil {
		s.deny(f.pair)
		return
	}
	s.relayFlow(f, outside, inside)
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
