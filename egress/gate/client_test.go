package gate

import (
	"io"
	"net"
	"net/netip"
	"testing"

	"clove.run/clove/egress/wire"
)

// While a request waits for long, the end of its client is reported at once, however it ends. The control is a client that
// sends more and is there: nothing says that it has ended, and behind the answer its bytes go both ways.
func TestTheEndOfAWaitingClientIsReported(t *testing.T) {
	t.Parallel()
	file, far := outside(t)
	answers := make(chan wire.Answer)
	s, b := begin(t, wire.Limits{}, func(wire.Request) wire.Answer { return <-answers })
	address := to(t, s, "203.0.113.5:22")

	there := dial(t, address)
	io.WriteString(there, "first")
	id := get(t, b.asked).ID
	io.WriteString(there, " and more")
	if got := get(t, b.held); got.Ended || got.Of != id || got.Client.String() != there.LocalAddr().String() || got.Target.String() != "203.0.113.5:22" || got.UDP {
		t.Errorf("control: %+v", got)
	}
	answers <- wire.Answer{Result: wire.ResultAllowed, Number: 7, Files: allowing(file)(wire.Request{}).Files}
	expectText(t, far, "first and more")
	io.WriteString(far, "answer")
	expectText(t, there, "answer")
	io.WriteString(there, "again")
	expectText(t, far, "again")
	there.Close()
	far.Close()
	get(t, b.closed)

	for what, end := range map[string]func(*net.TCPConn){
		"closed": func(c *net.TCPConn) { c.Close() }, "half-closed": func(c *net.TCPConn) { c.CloseWrite() }, "reset": func(c *net.TCPConn) { reset(c) },
	} {
		for len(b.held) > 0 {
			<-b.held
		}
		conn := dial(t, address)
		io.WriteString(conn, "bytes")
		id := get(t, b.asked).ID
		end(conn)
		if got := get(t, b.held); !got.Ended || got.Of != id {
			t.Errorf("%s: %+v", what, got)
		}
		answers <- wire.Answer{Result: wire.ResultDenied}
	}
}

// A flow is looked after as well: its socket's end is no event.
func TestAWaitingFlowIsReported(t *testing.T) {
	t.Parallel()
	answers := make(chan wire.Answer)
	s, b := begin(t, wire.Limits{}, func(wire.Request) wire.Answer { return <-answers })
	p := pair{netip.MustParseAddrPort("192.0.2.1:40000"), netip.MustParseAddrPort("203.0.113.5:443")}
	s.flows.datagram(p, []byte("hello"))
	id := get(t, b.asked).ID
	if got := get(t, b.held); got.Of != id || !got.UDP || got.Client != p.agent || got.Target != p.target {
		t.Errorf("%+v", got)
	}
	answers <- wire.Answer{Result: wire.ResultDenied}
}
