package dnsmsg

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAReplyOfOurOwn(t *testing.T) {
	t.Parallel()
	addrs := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("::ffff:10.0.0.1")}
	for _, c := range []struct {
		reply *Reply
		want  []string
	}{
		{NewReply("localhost", TypeA, RCodeSuccess).WithAddresses(time.Minute, addrs...), []string{"localhost. 60 IN A 127.0.0.1", "localhost. 60 IN A 10.0.0.1"}},
		{NewReply("localhost.", TypeAAAA, RCodeSuccess).WithAddresses(time.Minute, addrs...), []string{"localhost. 60 IN AAAA ::1"}},
		{NewReply("localhost", TypePTR, RCodeSuccess).WithAddresses(time.Minute, addrs...), nil},
		{NewReply("1.0.0.127.in-addr.arpa", TypePTR, RCodeSuccess).WithPTR(time.Hour, "localhost"), []string{"1.0.0.127.in-addr.arpa. 3600 IN PTR localhost."}},
		{NewReply("1.0.0.127.in-addr.arpa", TypeA, RCodeSuccess).WithPTR(time.Hour, "localhost"), nil},
	} {
		if got := text(t, c.reply); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.reply, got, c.want)
		}
	}
	for _, name := range []string{"no..name", strings.Repeat("abcdefg.", 40)} {
		if _, err := NewReply(name, TypeA, RCodeSuccess).Pack(); err == nil {
			t.Errorf("%q was packed", name)
		}
	}
}
