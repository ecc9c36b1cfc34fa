package broker

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// fakeGate sends the requests of a test.
type fakeGate struct {
	t     testing.TB
	conn  *wire.Conn
	setup wire.Answer
	done  chan struct{} // closed with the channel

	mu      sync.Mutex // guards the fields below
	id      uint64
	waiting map[uint64]chan wire.Answer
	files   []*os.File // all that were received
}

func newFakeGate(t testing.TB, conn *wire.Conn) *fakeGate {
	t.Helper()
	g := &fakeGate{t: t, conn: conn, done: make(chan struct{}), waiting: map[uint64]chan wire.Answer{}}
	setup, err := conn.ReceiveAnswer()
	if err != nil || setup.Setup == nil {
		t.Fatalf("%+v, %v; want the setup", setup, err)
	}
	g.setup = setup
	g.files = setup.Files
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
		g.files = append(g.files, answer.Files...)
		g.mu.Unlock()
		waiting <- answer
	}
}

var errNoAnswer = errors.New("the channel ended")

// begin sends a request without waiting for its answer.
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

// connected is open that must return a socket.
func (g *fakeGate) connected(target, name string) (wire.Answer, net.Conn) {
	g.t.Helper()
	answer := g.open(target, name)
	if answer.Result != wire.ResultAllowed || len(answer.Files) != 1 {
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

// closed reports the end of a connection and waits until the broker has it: answers to later
// requests come after that.
func (g *fakeGate) closed(number uint64, rx, tx int64) {
	g.t.Helper()
	g.tell(wire.Request{Closed: &wire.Closed{Number: number, RxBytes: rx, TxBytes: tx}})
	g.lookup("localhost", dnsmsg.TypeA)
}
