package resolver

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"clove.run/clove/egress/dnsmsg"
)

func addresses(reply *dnsmsg.Reply) []string {
	var texts []string
	for _, a := range reply.Addresses() {
		texts = append(texts, a.Addr.String())
	}
	return texts
}

func TestANameIsLookedUp(t *testing.T) {
	t.Parallel()
	soa := func(code int) answer {
		return func(w dns.ResponseWriter, query *dns.Msg) {
			msg := new(dns.Msg).SetRcode(query, code)
			rr, _ := dns.NewRR("test. 60 IN SOA ns.test. who.test. 1 2 3 4 60")
			msg.Ns = []dns.RR{rr}
			w.WriteMsg(msg)
		}
	}
	for _, c := range []struct {
		name  string
		qtype uint16
		say   answer
		rcode int
		want  []string
	}{
		{"a.test", dnsmsg.TypeA, records(t, "a.test. 60 IN A 198.51.100.7", "a.test. 60 IN A 10.0.0.1"), dnsmsg.RCodeSuccess, []string{"198.51.100.7", "10.0.0.1"}},
		{"A.Test.", dnsmsg.TypeAAAA, records(t, "a.test. 60 IN AAAA 2001:db8::1"), dnsmsg.RCodeSuccess, []string{"2001:db8::1"}},
		{"www.test", dnsmsg.TypeA, records(t, "www.test. 60 IN CNAME a.cdn.test.", "a.cdn.test. 9 IN CNAME b.test.", "b.test. 60 IN A 198.51.100.7"), dnsmsg.RCodeSuccess, []string{"198.51.100.7"}},
		{"h.test", dnsmsg.TypeHTTPS, records(t, `h.test. 60 IN HTTPS 1 . ipv4hint="198.51.100.7" ech="AEX+DQA="`), dnsmsg.RCodeSuccess, []string{"198.51.100.7"}},
		{"none.test", dnsmsg.TypeA, soa(dnsmsg.RCodeNameError), dnsmsg.RCodeNameError, nil},
		{"v6only.test", dnsmsg.TypeA, soa(dnsmsg.RCodeSuccess), dnsmsg.RCodeSuccess, nil},
		{"fails.test", dnsmsg.TypeA, rcode(dnsmsg.RCodeServerFailure), dnsmsg.RCodeServerFailure, nil},
		{"refused.test", dnsmsg.TypeA, rcode(dnsmsg.RCodeRefused), dnsmsg.RCodeServerFailure, nil}, // REFUSED is reserved for clove's own rules
	} {
		reply, err := asking(serve(t, c.say)).Lookup(deadline(t), c.name, c.qtype)
		if err != nil || reply.RCode() != c.rcode || !slices.Equal(addresses(reply), c.want) {
			t.Errorf("%s: %v, %v", c.name, reply, err)
		}
	}
}

func TestALargeAnswerComesByTCP(t *testing.T) {
	t.Parallel()
	server := serve(t, large(t, 2000))
	reply, err := asking(server).Lookup(deadline(t), "big.test", dnsmsg.TypeA)
	if err != nil || len(reply.Addresses()) != 2000 {
		t.Fatalf("%v", err)
	}
	if got := server.questions(); !slices.Equal(got, []string{"udp big.test. A", "tcp big.test. A"}) {
		t.Errorf("asked %q", got)
	}
}

// TestForgedAnswersAreNotBelieved: they come first, from the right address, and the true
// answer after them.
func TestForgedAnswersAreNotBelieved(t *testing.T) {
	t.Parallel()
	const forged, truth = "198.51.100.66", "198.51.100.7"
	for name, forge := range map[string]func(*dns.Msg){
		"wrong ID":       func(m *dns.Msg) { m.Id++ },
		"wrong question": func(m *dns.Msg) { m.Question[0].Name = "b.test." },
		"wrong type":     func(m *dns.Msg) { m.Question[0].Qtype = dns.TypeAAAA },
		"a query":        func(m *dns.Msg) { m.Response = false },
		"control":        nil,
	} {
		server := serve(t, func(w dns.ResponseWriter, query *dns.Msg) {
			msg := new(dns.Msg).SetReply(query)
			rr, _ := dns.NewRR("a.test. 60 IN A " + forged)
			msg.Answer = []dns.RR{rr}
			if forge != nil {
				forge(msg)
			}
			w.WriteMsg(msg)
			records(t, "a.test. 60 IN A "+truth)(w, query)
		})
		reply, err := asking(server).Lookup(deadline(t), "a.test", dnsmsg.TypeA)
		want := truth
		if forge == nil { // the control: a forger who knows ID and port succeeds
			want = forged
		}
		if err != nil || !slices.Equal(addresses(reply), []string{want}) {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
}

// TestAnAnswerFromAnotherPortIsNotBelieved: it has the right ID and question.
func TestAnAnswerFromAnotherPortIsNotBelieved(t *testing.T) {
	t.Parallel()
	_, other := bind(t)
	defer other.Close()
	server := serve(t, func(w dns.ResponseWriter, query *dns.Msg) {
		msg := new(dns.Msg).SetReply(query)
		rr, _ := dns.NewRR("a.test. 60 IN A 198.51.100.66")
		msg.Answer = []dns.RR{rr}
		packet, _ := msg.Pack()
		other.WriteTo(packet, w.RemoteAddr())
		records(t, "a.test. 60 IN A 198.51.100.7")(w, query)
	})
	reply, err := asking(server).Lookup(deadline(t), "a.test", dnsmsg.TypeA)
	if err != nil || !slices.Equal(addresses(reply), []string{"198.51.100.7"}) {
		t.Errorf("%v, %v", reply, err)
	}
}

func TestIDsAndPortsDiffer(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 100)
	server := serve(t, func(w dns.ResponseWriter, query *dns.Msg) {
		_, port, _ := strings.Cut(w.RemoteAddr().String(), ":")
		seen <- "port " + port
		seen <- "id " + dns.Type(query.Id).String()
		rcode(dnsmsg.RCodeServerFailure)(w, query) // not cached
	})
	r := asking(server)
	for range 30 {
		if _, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA); err != nil {
			t.Fatal(err)
		}
	}
	different := map[string]bool{}
	for range 60 {
		different[<-seen] = true
	}
	if len(different) < 50 { // of 60; a few may be equal by chance
		t.Errorf("only %d different IDs and ports in 30 questions", len(different))
	}
}

func TestTheNextServerIsAsked(t *testing.T) {
	t.Parallel()
	good := records(t, "a.test. 60 IN A 198.51.100.7")
	garbage := func(w dns.ResponseWriter, query *dns.Msg) {
		packet, _ := new(dns.Msg).SetReply(query).Pack()
		packet[7] = 9 // it announces answers that are missing
		w.Write(packet)
	}
	halfway := func(w dns.ResponseWriter, query *dns.Msg) { // truncated over UDP, no answer over TCP
		if w.LocalAddr().Network() == "udp" {
			large(t, 1)(w, query)
		}
	}
	refuses := &fakeServer{addr: closedPort(t)}
	for name, first := range map[string]*fakeServer{
		"SERVFAIL": serve(t, rcode(dnsmsg.RCodeServerFailure)), "REFUSED": serve(t, rcode(dnsmsg.RCodeRefused)),
		"silent": serve(t, silent), "garbage": serve(t, garbage), "silent by TCP": serve(t, halfway), "no server": refuses,
	} {
		second := serve(t, good)
		reply, err := asking(first, second).Lookup(deadline(t), "a.test", dnsmsg.TypeA)
		if err != nil || !slices.Equal(addresses(reply), []string{"198.51.100.7"}) || len(second.questions()) != 1 {
			t.Errorf("%s: %v, %v", name, reply, err)
		}
	}
}

// closedPort returns a port on which nothing listens.
func closedPort(t *testing.T) netip.AddrPort {
	listener, packets := bind(t)
	listener.Close()
	packets.Close()
	return netip.MustParseAddrPort(listener.Addr().String())
}

func TestNoAnswerIsAnError(t *testing.T) {
	t.Parallel()
	quiet := serve(t, silent)
	r := asking(quiet, &fakeServer{addr: closedPort(t)})
	r.timeout = 50 * time.Millisecond
	if reply, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA); !errors.Is(err, ErrNoAnswer) || errors.Is(err, ErrNoServers) {
		t.Errorf("%v, %v", reply, err)
	}
	if got := len(quiet.questions()); got != rounds {
		t.Errorf("asked %d times", got)
	}
	none := New(Config{ResolvConf: t.TempDir() + "/none", Hosts: t.TempDir() + "/none"})
	if reply, err := none.Lookup(deadline(t), "a.test", dnsmsg.TypeA); !errors.Is(err, ErrNoServers) {
		t.Errorf("%v, %v", reply, err)
	}
}

func TestTheCallersContextEndsItsWait(t *testing.T) {
	t.Parallel()
	quiet := serve(t, silent)
	r := asking(quiet)
	r.timeout = 10 * time.Second
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-quiet.arrived; cancel() }()
	started := time.Now()
	if _, err := r.Lookup(ctx, "a.test", dnsmsg.TypeA); !errors.Is(err, context.Canceled) || time.Since(started) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(started))
	}
}

func TestAServerFromBeforeEDNS(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w dns.ResponseWriter, query *dns.Msg) {
		if query.IsEdns0() != nil {
			rcode(dnsmsg.RCodeFormatError)(w, query)
			return
		}
		records(t, "a.test. 60 IN A 198.51.100.7")(w, query)
	})
	if reply, err := asking(server).Lookup(deadline(t), "a.test", dnsmsg.TypeA); err != nil || len(reply.Addresses()) != 1 {
		t.Errorf("%v, %v", reply, err)
	}
}

func TestANameThatIsNoneIsNotAsked(t *testing.T) {
	t.Parallel()
	server := serve(t, records(t))
	for _, name := range []string{"a..test", strings.Repeat("x", 64) + ".test"} {
		if reply, err := asking(server).Lookup(deadline(t), name, dnsmsg.TypeA); err == nil {
			t.Errorf("%q: %v", name, reply)
		}
	}
	if got := server.questions(); len(got) != 0 {
		t.Errorf("asked %q", got)
	}
}
