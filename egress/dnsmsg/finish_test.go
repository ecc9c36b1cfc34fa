package dnsmsg

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/miekg/dns"
	"pgregory.net/rapid"
)

// manyAddresses returns a message with this many A records.
func manyAddresses(t testing.TB, name string, count int) []byte {
	t.Helper()
	reply := NewReply(name, TypeA, RCodeSuccess)
	addr := netip.MustParseAddr("198.18.0.0")
	for range count {
		addr = addr.Next()
		reply.WithAddresses(time.Minute, addr)
	}
	message, err := reply.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func unpacked(t testing.TB, packet []byte) *dns.Msg {
	t.Helper()
	msg := new(dns.Msg)
	if err := msg.Unpack(packet); err != nil {
		t.Fatal(err)
	}
	return msg
}

func TestAnAnswerIsMadeForItsQuery(t *testing.T) {
	t.Parallel()
	q := mustParse(t, packed(t, "aPi.eXample.CoM.", TypeA, func(m *dns.Msg) { m.SetEdns0(4096, true); m.CheckingDisabled = true }))
	packet, err := Finish(manyAddresses(t, "api.example.com", 2), q, MaxUDPBytes)
	if err != nil {
		t.Fatal(err)
	}
	msg := unpacked(t, packet)
	if msg.Id != q.ID || !msg.Response || !msg.RecursionAvailable || !msg.RecursionDesired || !msg.CheckingDisabled || msg.Authoritative || msg.Truncated {
		t.Errorf("header %+v", msg.MsgHdr)
	}
	if msg.Question[0].Name != q.Name || len(msg.Answer) != 2 || msg.Answer[0].Header().Name != q.Name {
		t.Errorf("the case of %s is lost: %v", q.Name, msg)
	}
	if opt := msg.IsEdns0(); opt == nil || !opt.Do() || opt.UDPSize() != MaxQueryBytes || len(msg.Extra) != 1 {
		t.Errorf("additional section %v", msg.Extra)
	}
	q.EDNS = false
	packet, err = Finish(manyAddresses(t, "api.example.com", 2), q, MaxUDPBytes)
	if err != nil || unpacked(t, packet).IsEdns0() != nil {
		t.Errorf("a client without EDNS gets it: %v", err)
	}
}

func TestAnAnswerFitsWhatTheClientTakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		edns, limit, records int // edns 0: without EDNS
		want                 int // the largest size
		truncated            bool
	}{
		{0, MaxUDPBytes, 20, 512, false},
		{0, MaxUDPBytes, 200, 512, true},
		{100, MaxUDPBytes, 200, 512, true},
		{1232, MaxUDPBytes, 200, 1232, true},
		{1232, MaxUDPBytes, 60, 1232, false},
		{65535, MaxUDPBytes, 2000, MaxUDPBytes, true},
		{65535, MaxUDPBytes, 200, MaxUDPBytes, false},
		{0, MaxTCPBytes, 4000, MaxTCPBytes, false},
		{1232, MaxTCPBytes, 4000, MaxTCPBytes, false},
	} {
		q := mustParse(t, packed(t, "a.test.", TypeA, func(m *dns.Msg) {
			if c.edns != 0 {
				m.SetEdns0(uint16(c.edns), false)
			}
		}))
		message := manyAddresses(t, "a.test", c.records)
		packet, err := Finish(message, q, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		msg := unpacked(t, packet)
		if len(packet) > c.want || msg.Truncated != c.truncated || (msg.IsEdns0() != nil) != (c.edns != 0) {
			t.Errorf("%+v: %d bytes, truncated %v, OPT %v", c, len(packet), msg.Truncated, msg.IsEdns0())
		}
		if c.truncated && len(message) <= c.want { // the control
			t.Errorf("%+v: %d bytes fit without being cut", c, len(message))
		}
		if !c.truncated && len(msg.Answer) != c.records {
			t.Errorf("%+v: %d records", c, len(msg.Answer))
		}
	}
}

func TestAnswersNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.StringMatching(`([a-z]{1,20}\.){1,8}`).Draw(r, "name")
		reply := NewReply(name, dns.TypeTXT, RCodeSuccess)
		for range rapid.IntRange(0, 40).Draw(r, "records") {
			reply.msg.Answer = append(reply.msg.Answer, &dns.TXT{Hdr: reply.header(time.Minute), Txt: []string{rapid.StringMatching(`[ -~]{0,200}`).Draw(r, "text")}})
		}
		message, err := reply.Pack()
		if err != nil {
			r.Fatal(err)
		}
		q := Query{Name: reply.Name(), Type: dns.TypeTXT, EDNS: rapid.Bool().Draw(r, "edns"), UDPSize: rapid.IntRange(512, 65535).Draw(r, "size")}
		packet, err := Finish(message, q, MaxUDPBytes)
		if err != nil || len(packet) > min(q.UDPSize, MaxUDPBytes) {
			r.Fatalf("%d bytes for %+v, %v", len(packet), q, err)
		}
		msg := unpacked(t, packet)
		if msg.Truncated == (len(msg.Answer) == len(reply.msg.Answer)) || (msg.IsEdns0() != nil) != q.EDNS {
			r.Fatalf("%d of %d records, truncated %v", len(msg.Answer), len(reply.msg.Answer), msg.Truncated)
		}
	})
}

func TestAnotherQuestionsMessageIsNoAnswer(t *testing.T) {
	t.Parallel()
	q := Query{Name: "a.test.", Type: TypeA, UDPSize: 512}
	good := manyAddresses(t, "A.test", 1)
	if _, err := Finish(good, q, MaxUDPBytes); err != nil { // the control
		t.Fatal(err)
	}
	for name, message := range map[string][]byte{
		"nothing":         nil,
		"cut off":         good[:len(good)-1],
		"a query":         packed(t, "a.test.", TypeA, nil),
		"another name":    manyAddresses(t, "b.test", 1),
		"another type":    must(NewReply("a.test", TypeAAAA, RCodeSuccess).Pack()),
		"no question":     packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Response = true; m.Question = nil }),
		"two questions":   packed(t, "a.test.", TypeA, func(m *dns.Msg) { m.Response = true; m.Question = append(m.Question, m.Question[0]) }),
		"garbage, padded": make([]byte, 500),
	} {
		if _, err := Finish(message, q, MaxUDPBytes); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestAFailureSaysItsCodeOrAWeakerOne(t *testing.T) {
	t.Parallel()
	q := mustParse(t, packed(t, "A.test.", TypeA, func(m *dns.Msg) { m.SetEdns0(1232, false) }))
	if msg := unpacked(t, Fail(q, RCodeRefused)); msg.Rcode != RCodeRefused || msg.Question[0].Name != "A.test." || msg.IsEdns0() == nil || len(msg.Answer)+len(msg.Ns) != 0 {
		t.Errorf("%v", msg)
	}
	if msg := unpacked(t, Fail(q, RCodeBadVersion)); msg.Rcode != RCodeBadVersion {
		t.Errorf("%v", msg)
	}
	q.EDNS = false
	if msg := unpacked(t, Fail(q, RCodeBadVersion)); msg.Rcode != RCodeServerFailure {
		t.Errorf("without EDNS: %v", msg)
	}
	if msg := unpacked(t, Fail(Query{ID: 9, Name: "no..name."}, RCodeRefused)); msg.Id != 9 || msg.Rcode != RCodeRefused || len(msg.Question) != 0 {
		t.Errorf("without a name: %v", msg)
	}
}

func must(packet []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return packet
}

func BenchmarkQueryToAnswer(b *testing.B) {
	for _, records := range []int{1, 20, 200} {
		b.Run(fmt.Sprintf("%d records", records), func(b *testing.B) {
			packet := packed(b, "api.example.com.", TypeA, func(m *dns.Msg) { m.SetEdns0(4096, false) })
			message := manyAddresses(b, "api.example.com", records)
			for b.Loop() {
				q, err := ParseQuery(packet)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Finish(message, q, MaxUDPBytes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
