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
	// flowEarly is how many datagrams wait while the broker is asked.
	flowEarly = 8
	// earlyBytes is how much waits in all flows together: an agent that keeps the
	// broker busy would make the gate hold 512 KiB for each of a thousand flows.
	earlyBytes = 1 << 20
	// denialMemory keeps a flood to one target from being a flood of questions.
	denialMemory  = time.Second
	denialEntries = 4096
)

// pair names a flow.
type pair struct{ agent, target netip.AddrPort }

// flows are the UDP flows that are being asked for or relayed.
type flows struct {
	early atomic.Int64 // bytes that wait, see earlyBytes

	mu     sync.Mutex // guards what follows
	open   map[pair]*flow
	denied map[pair]time.Time
}

func newFlows() *flows {
	return &flows{open: map[pair]*flow{}, denied: map[pair]time.Time{}}
}

// flow relays between one socket of the agent and one target.
type flow struct {
	pair
	traffic  traffic
	answered atomic.Bool
	began    time.Time    // of the relay
	last     atomic.Int64 // nanoseconds from began to what passed last

	number atomic.Uint64 // the broker's, until its end is told

	waiting *atomic.Int64 // bytes in early, of all flows

	mu      sync.Mutex   // guards what follows
	early   [][]byte     // datagrams that came before outside was there
	outside *net.UDPConn // nil until allowed
	over    bool         // nothing waits any more
}

// serveFlows handles the datagrams that belong to no flow's own socket.
func (s *server) serveFlows(conn *net.UDPConn) {
	buffer := make([]byte, datagramBytes)
	for {
		d, err := receiveDatagram(conn, buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if !s.pause(acceptBackoff) {
				return
			}
			continue
		}
		if d.to.IsValid() && !d.to.Addr().IsLoopback() {
			s.datagram(pair{unmap(d.from), d.to}, buffer[:d.bytes])
		}
	}
}

// datagram hands one to its flow, or asks for a new flow.
func (s *server) datagram(p pair, data []byte) {
	f, fresh := s.flowOf(p)
	if f == nil {
		return
	}
	if outside := f.wait(data); outside != nil {
		_ = s.pass(f, outside, data, &f.traffic.tx) // the flow's own end is told elsewhere
	}
	if fresh {
		go func() {
			defer s.limits.release()
			defer s.forget(p)
			s.serveFlow(f)
		}()
	}
}

// wait keeps a datagram for later, or says where it can go now. Beyond
// flowEarly and earlyBytes it is lost, as datagrams may be.
func (f *flow) wait(data []byte) *net.UDPConn {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || len(f.early) == flowEarly {
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

// endWait gives out what waited; outside is where the rest can go, nil if
// nowhere.
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

// flowOf finds the flow of p or begins it; nil if it may not be.
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

// tellEnd tells the end of f once; the broker numbers none 0.
func (s *server) tellEnd(f *flow) {
	s.broker.closed(f.number.Swap(0), f.traffic.rx.Load(), f.traffic.tx.Load())
}

// tellFlows is the last that the broker hears: flows have no end of their own,
// and what went through those that are open nobody else knows.
func (s *server) tellFlows() {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	for _, f := range s.flows.open {
		s.tellEnd(f)
	}
}

func (s *server) forget(p pair) {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	delete(s.flows.open, p)
}

func (s *server) deny(p pair) {
	s.flows.mu.Lock()
	defer s.flows.mu.Unlock()
	if len(s.flows.denied) >= denialEntries {
		clear(s.flows.denied)
	}
	s.flows.denied[p] = time.Now()
}

// serveFlow is a flow's whole life.
func (s *server) serveFlow(f *flow) {
	defer f.endWait(nil) // of one that was not allowed
	answer, err := s.broker.ask(wire.Request{Flow: &wire.Flow{Agent: f.agent, Target: f.target}})
	if err != nil || answer.Verdict != wire.VerdictAllowed {
		closeFiles(answer.Files)
		s.deny(f.pair)
		return
	}
	f.number.Store(answer.Number)
	defer s.tellEnd(f)
	outside, inside, err := twoSockets(answer.Files)
	if err != nil {
		s.deny(f.pair)
		return
	}
	s.relayFlow(f, outside, inside)
}

// twoSockets makes an answer's descriptors the flow's connections.
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
