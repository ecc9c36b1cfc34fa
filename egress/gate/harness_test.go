package gate

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/packet"
)

// patience bounds events that normally come at once.
const patience = 20 * time.Second

// fakeBroker gives the answers of a test.
type fakeBroker struct {
	t       *testing.T
	conn    *wire.Conn
	decide  func(wire.Request) wire.Answer
	closed  chan wire.Closed
	refused chan wire.Refused
	asked   chan wire.Request
	held    chan wire.Held
}

// begin serves a gate in this process.
func begin(t *testing.T, limits wire.Limits, decide func(wire.Request) wire.Answer) (*server, *fakeBroker) {
	t.Helper()
	conn, file, err := wire.Pair()
	check(t, err)
	gate := takeOver(t, file)
	s, err := newServer(gate, limits)
	check(t, err)
	b := &fakeBroker{t: t, conn: conn, decide: decide, closed: make(chan wire.Closed, 4096),
		refused: make(chan wire.Refused, 4096), asked: make(chan wire.Request, 4096), held: make(chan wire.Held, 4096)}
	ended := make(chan error)
	go func() { ended <- s.serve(nil, nil, func([]int) error { return nil }) }()
	if r, err := conn.ReceiveRequest(); err != nil || r.Ready == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	go b.serve()
	t.Cleanup(func() {
		conn.Close()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
		gate.Close()
	})
	return s, b
}

// takeOver is the gate's side of a channel, as package confine makes it.
func takeOver(t *testing.T, file *os.File) *wire.Conn {
	t.Helper()
	own, err := packet.Inherited(file)
	check(t, err)
	return &wire.Conn{Conn: own}
}

func (b *fakeBroker) serve() {
	for {
		r, err := b.conn.ReceiveRequest()
		switch {
		case err != nil:
			return
		case r.Closed != nil:
			b.closed <- *r.Closed
		case r.Refused != nil:
			b.refused <- *r.Refused
		case r.Held != nil:
			b.held <- *r.Held
		default:
			b.asked <- r
			go func() {
				answer := b.decide(r)
				answer.ID = r.ID
				_ = b.conn.SendAnswer(answer) // the gate has ended
				closeFiles(answer.Files)
			}()
		}
	}
}

// front is a listener in front of handle, as the agent reaches it.
func front(t *testing.T, s *server, handle func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { listener.Close() })
	go s.accept(listener.(*net.TCPListener), s.limits, handle)
	return listener.Addr().String()
}

// to is a front whose connections want target.
func to(t *testing.T, s *server, target string) string {
	return front(t, s, func(c *net.TCPConn) { s.connect(c, netip.MustParseAddrPort(target)) })
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp4", address)
	check(t, err)
	check(t, conn.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// outside returns a connected pair: the broker's socket, and its peer.
func outside(t *testing.T) (*os.File, *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	defer listener.Close()
	near := dial(t, listener.Addr().String())
	far, err := listener.Accept()
	check(t, err)
	t.Cleanup(func() { far.Close() })
	check(t, far.SetDeadline(time.Now().Add(patience)))
	file, err := near.File()
	check(t, err)
	near.Close()
	return file, far.(*net.TCPConn)
}

func allowing(file *os.File) func(wire.Request) wire.Answer {
	return func(wire.Request) wire.Answer {
		return wire.Answer{Result: wire.ResultAllowed, Number: 7, Files: []*os.File{file}}
	}
}

// get waits for one value.
func get[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func expectText(t *testing.T, from io.Reader, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != want {
		t.Fatalf("%q, %v; want %q", got, err, want)
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expectReset connects, sends data, and expects only a reset, which may come before connect(2)
// returns.
func expectReset(t *testing.T, address, data string) {
	t.Helper()
	near, err := net.Dial("tcp4", address)
	if err == nil {
		defer near.Close()
		check(t, near.SetDeadline(time.Now().Add(patience)))
		_, err = io.WriteString(near, data)
	}
	if err == nil {
		_, err = near.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%.40q: %v, want a reset", data, err)
	}
}
