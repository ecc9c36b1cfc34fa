package resolver

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// fakeServer is a name server on loopback, by UDP and TCP on one port.
type fakeServer struct {
	addr netip.AddrPort

	mu      sync.Mutex // guards asked
	asked   []string   // "udp a.test. A", in order
	arrived chan struct{}
}

// answer writes a fake server's response; it may write none, or several.
type answer func(w dns.ResponseWriter, query *dns.Msg)

// serve starts a fake server that ends with the test.
func serve(t testing.TB, say answer) *fakeServer {
	t.Helper()
	listener, packets := bind(t)
	s := &fakeServer{addr: listener.Addr().(*net.TCPAddr).AddrPort(), arrived: make(chan struct{}, 1000)}
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		s.mu.Lock()
		s.asked = append(s.asked, w.LocalAddr().Network()+" "+query.Question[0].Name+" "+dns.Type(query.Question[0].Qtype).String())
		s.mu.Unlock()
		s.arrived <- struct{}{}
		say(w, query)
	})
	for _, server := range []*dns.Server{{Listener: listener, Handler: handler}, {PacketConn: packets, Handler: handler}} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		done := make(chan struct{})
		go func() { defer close(done); server.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { server.Shutdown(); <-done })
	}
	return s
}

// bind finds a port that is free for both protocols.
func bind(t testing.TB) (net.Listener, net.PacketConn) {
	for range 20 {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		packets, err := net.ListenPacket("udp4", listener.Addr().String())
		if err == nil {
			return listener, packets
		}
		listener.Close()
	}
	t.Fatal("no port is free for both TCP and UDP")
	return nil, nil
}

func (s *fakeServer) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.asked...)
}

// records answers every query with these records, in the format of a zone file.
func records(t testing.TB, texts ...string) answer {
	t.Helper()
	var rrs []dns.RR
	for _, text := range texts {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		rrs = append(rrs, rr)
	}
	return func(w dns.ResponseWriter, query *dns.Msg) {
		msg := new(dns.Msg).SetReply(query)
		msg.Answer = rrs
		w.WriteMsg(msg)
	}
}

func rcode(code int) answer {
	return func(w dns.ResponseWriter, query *dns.Msg) { w.WriteMsg(new(dns.Msg).SetRcode(query, code)) }
}

func silent(dns.ResponseWriter, *dns.Msg) {}

// large answers with this many addresses, truncated over UDP.
func large(t testing.TB, count int) answer {
	var texts []string
	for i := range count {
		texts = append(texts, "big.test. 60 IN A 198.18."+strconv.Itoa(i/256)+"."+strconv.Itoa(i%256))
	}
	whole := records(t, texts...)
	return func(w dns.ResponseWriter, query *dns.Msg) {
		if w.LocalAddr().Network() == "tcp" {
			whole(w, query)
			return
		}
		msg := new(dns.Msg).SetReply(query)
		msg.Truncated = true
		w.WriteMsg(msg)
	}
}

// asking makes a resolver that queries these servers, and does not wait long for silent ones.
func asking(servers ...*fakeServer) *Resolver {
	var config Config
	for _, s := range servers {
		config.Servers = append(config.Servers, s.addr)
	}
	r := New(config)
	r.timeout = 200 * time.Millisecond
	return r
}

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
