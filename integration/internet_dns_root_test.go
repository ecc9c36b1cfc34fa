//go:build root

package integration

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"clove.run/clove/internal/nsthread"
)

// zone is what the one name server of the test network knows, and what queries it got.
type zone struct {
	mu      sync.Mutex
	records map[string][]dns.RR // guarded by mu; by lower-case name with the last dot
	turns   map[string][]string // guarded by mu: the addresses that a name gets one after the other; the last one stays
	asked   []string            // guarded by mu: "A api.example.com."
	silent  bool                // guarded by mu: answer no query
}

func newZone() *zone {
	z := &zone{records: map[string][]dns.RR{}, turns: map[string][]string{}}
	for _, line := range []string{
		"api.example.com. 60 IN A " + siteAddress,
		"api.example.com. 60 IN AAAA " + siteAddress6,
		"www.example.com. 60 IN CNAME api.example.com.",
		"deep.chain.example.com. 60 IN CNAME www.example.com.",
		"db.example.com. 60 IN A " + otherAddress,
		"files.example.org. 60 IN A " + siteAddress, // another name of the same address
		"evil.example.net. 60 IN A " + evilAddress,
		"evil.example.net. 60 IN AAAA " + evilAddress6,
		"private.example.com. 60 IN A " + lanAddress,
		"private6.example.com. 60 IN AAAA " + lanAddress6,
		"alias-private.example.com. 60 IN CNAME inner.lan.",
		"inner.lan. 60 IN A " + lanAddress,
		"metadata.example.com. 60 IN A " + metadataAddress,
		"loop.example.com. 60 IN A 127.0.0.1",
		"loop6.example.com. 60 IN AAAA ::1",
		"nowhere.example.com. 60 IN A 0.0.0.0",
		"mapped.example.com. 60 IN AAAA ::ffff:" + lanAddress,
		"nat64.example.com. 60 IN AAAA " + nat64Address,
		"sixtofour.example.com. 60 IN AAAA " + sixToFour,
		"own.example.com. 60 IN A " + ownPublicAddress,
		"mixed.example.com. 60 IN A " + lanAddress,
		"mixed.example.com. 60 IN A " + siteAddress,
		"hidden.example.com. 60 IN A " + siteAddress,
		`hidden.example.com. 60 IN HTTPS 1 . alpn="h2" ech="AAAA"`,
		"34.216.184.93.in-addr.arpa. 60 IN PTR api.example.com.",
	} {
		z.add(line)
	}
	for i := range 40 { // 4 KB: never in one plain datagram
		z.add(fmt.Sprintf("large.example.com. 60 IN TXT \"%03d%s\"", i, strings.Repeat("x", 100)))
	}
	for i := range 60 {
		z.add(fmt.Sprintf("large.example.com. 60 IN A 93.184.217.%d", i+1))
	}
	z.add("large.example.com. 60 IN A " + siteAddress)
	return z
}

// add adds a record in the format of a zone file.
func (z *zone) add(line string) {
	record, err := dns.NewRR(line)
	if err != nil {
		panic(err)
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	name := strings.ToLower(record.Header().Name)
	z.records[name] = append(z.records[name], record)
}

// rebind gives a name one address after the other, each with TTL 0.
func (z *zone) rebind(name string, addresses ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.turns[name] = addresses
}

// awaitTurn repeats a call until a name has only its last address left, because a resolver may
// cache the others for a moment.
func (z *zone) awaitTurn(t *testing.T, name string, again func()) {
	t.Helper()
	for deadline := time.Now().Add(patience()); ; again() {
		z.mu.Lock()
		left := len(z.turns[name])
		last := left == 1 && slices.Contains(z.asked, "last "+name)
		z.mu.Unlock()
		if last {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is never asked for again", name)
		}
	}
}

// fall keeps the server from answering until the end of the test.
func (z *zone) fall() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.silent = true
}

// forget drops the recorded queries, those of controls.
func (z *zone) forget() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked = nil
}

// questions returns the queries since then.
func (z *zone) questions() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.asked)
}

// wasAsked reports whether a query for a name, of any type, came to the server.
func (z *zone) wasAsked(name string) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.ContainsFunc(z.asked, func(q string) bool { return strings.HasSuffix(q, " "+name+".") })
}

// ServeDNS answers one query.
func (z *zone) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	reply := new(dns.Msg).SetReply(query)
	reply.RecursionAvailable = true
	question := query.Question[0]
	name := strings.ToLower(question.Name)
	z.mu.Lock()
	z.asked = append(z.asked, dns.TypeToString[question.Qtype]+" "+name)
	silent := z.silent
	reply.Answer = z.answers(name, question.Qtype)
	if len(reply.Answer) == 0 && len(z.records[name]) == 0 && len(z.turns[name]) == 0 {
		reply.Rcode = dns.RcodeNameError
	}
	z.mu.Unlock()
	if silent {
		return
	}
	size := dns.MaxMsgSize
	if _, udp := w.RemoteAddr().(*net.UDPAddr); udp {
		size = dns.MinMsgSize
		if extended := query.IsEdns0(); extended != nil {
			size = int(extended.UDPSize())
		}
	}
	if query.IsEdns0() != nil {
		reply.SetEdns0(1232, false)
	}
	reply.Truncate(size)
	w.WriteMsg(reply)
}

// answers follows aliases as a recursive resolver does. The caller holds mu.
func (z *zone) answers(name string, kind uint16) []dns.RR {
	if turns := z.turns[name]; len(turns) > 0 {
		if kind != dns.TypeA {
			return nil
		}
		if len(turns) > 1 {
			z.turns[name] = turns[1:]
		} else {
			z.asked = append(z.asked, "last "+name)
		}
		record, _ := dns.NewRR(name + " 0 IN A " + turns[0])
		return []dns.RR{record}
	}
	var found []dns.RR
	for _, record := range z.records[name] {
		if alias, ok := record.(*dns.CNAME); ok && kind != dns.TypeCNAME {
			return append([]dns.RR{record}, z.answers(alias.Target, kind)...)
		}
		if record.Header().Rrtype == kind {
			found = append(found, record)
		}
	}
	return found
}

// serveDNS answers over UDP and TCP.
func (n *internet) serveDNS(thread *nsthread.Thread, address string) error {
	var datagrams net.PacketConn
	var listener net.Listener
	err := thread.Do(func() (err error) {
		if datagrams, err = net.ListenPacket("udp", address); err == nil {
			listener, err = net.Listen("tcp", address)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, server := range []*dns.Server{{PacketConn: datagrams, Handler: n.zone}, {Listener: listener, Handler: n.zone}} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		n.served.Go(func() { server.ActivateAndServe() })
		<-started
		n.closers = append(n.closers, func() { server.Shutdown() })
	}
	return nil
}
