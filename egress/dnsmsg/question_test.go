package dnsmsg

import (
	"errors"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestAQuestionAsksForRecursionAndNoMore(t *testing.T) {
	t.Parallel()
	q := Question{ID: 9, Name: "a.test", Type: TypeAAAA}
	for _, edns := range []bool{true, false} {
		msg := unpacked(t, must(q.Pack(edns)))
		if msg.Id != 9 || !msg.RecursionDesired || msg.AuthenticatedData || msg.Question[0] != (dns.Question{Name: "a.test.", Qtype: TypeAAAA, Qclass: dns.ClassINET}) {
			t.Errorf("%v", msg)
		}
		if opt := msg.IsEdns0(); (opt != nil) != edns || (edns && (opt.UDPSize() != UpstreamUDPBytes || opt.Do())) {
			t.Errorf("OPT %v", opt)
		}
	}
	for _, name := range []string{"no..name", strings.Repeat("x", 64), strings.Repeat("abcdefg.", 40)} {
		if _, err := (Question{Name: name, Type: TypeA}).Pack(true); err == nil {
			t.Errorf("%q was packed", name)
		}
	}
}

func TestWhichAnswersAreBelieved(t *testing.T) {
	t.Parallel()
	q := Question{ID: 7, Name: "a.test", Type: TypeA}
	const record = "a.test. 60 IN A 198.51.100.7"
	changed := func(change func(*dns.Msg)) []byte {
		msg := unpacked(t, message(t, "a.test.", TypeA, 0, record))
		change(msg)
		return must(msg.Pack())
	}
	good := message(t, "A.TEST.", TypeA, 0, record)
	for _, c := range []struct {
		name   string
		packet []byte
		want   error
	}{
		{"the answer", good, nil},
		{"nothing", nil, ErrForeign},
		{"another ID", changed(func(m *dns.Msg) { m.Id = 8 }), ErrForeign},
		{"another name", message(t, "b.test.", TypeA, 0, record), ErrForeign},
		{"another type", message(t, "a.test.", TypeAAAA, 0, record), ErrForeign},
		{"another class", changed(func(m *dns.Msg) { m.Question[0].Qclass = dns.ClassCHAOS }), ErrForeign},
		{"a query", changed(func(m *dns.Msg) { m.Response = false }), ErrForeign},
		{"no question", changed(func(m *dns.Msg) { m.Question = nil; m.Answer = nil }), ErrForeign},
		{"half a question", good[:14], ErrForeign},
		{"truncated", changed(func(m *dns.Msg) { m.Truncated = true }), ErrTruncated},
		{"truncated in a record", changed(func(m *dns.Msg) { m.Truncated = true })[:30], ErrTruncated},
	} {
		reply, err := q.Read(c.packet)
		if !errors.Is(err, c.want) || (err == nil) != (reply != nil) {
			t.Errorf("%s: %v, %v; want %v", c.name, reply, err, c.want)
		}
	}
	if _, err := q.Read(good[:len(good)-2]); err == nil || errors.Is(err, ErrForeign) {
		t.Errorf("broken: %v", err)
	}
	bare := changed(func(m *dns.Msg) { m.Question, m.Answer, m.Rcode = nil, nil, RCodeFormatError })
	if reply, err := q.Read(bare); err != nil || reply.RCode() != RCodeFormatError {
		t.Errorf("a format error without a question: %v, %v", reply, err)
	}
}
