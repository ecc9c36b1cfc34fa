package gate

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"testing"

	"clove.run/clove/egress/wire"
)

// knows is a gate that has requested target before, with the answer that it needs a name.
func knows(t *testing.T, target string, decide func(wire.Request) wire.Answer) (*server, *fakeBroker) {
	t.Helper()
	s, b := begin(t, wire.Limits{}, decide)
	s.named.learn(netip.MustParseAddrPort(target), wire.ResultVerify)
	return s, b
}

// TestAKnownTargetIsAskedForOnce: with the name; the control is the first time.
func TestAKnownTargetIsAskedForOnce(t *testing.T) {
	t.Parallel()
	const target = "192.0.2.1:443"
	hello := string(helloOf(t, &tls.Config{ServerName: "a.example"}))
	for _, known := range []bool{false, true} {
		decide, expect := byName(t, wire.ResultVerify)
		s, b := begin(t, wire.Limits{}, decide)
		questions := 2
		if known {
			questions = 1
			s.named.learn(netip.MustParseAddrPort(target), wire.ResultVerify)
		}
		near := dial(t, to(t, s, target))
		_, err := io.WriteString(near, hello+"and more")
		check(t, err)
		expect(hello + "and more")
		if len(b.asked) != questions {
			t.Errorf("known %t: asked %d times", known, len(b.asked))
		}
		if !s.named.has(netip.MustParseAddrPort(target)) {
			t.Errorf("known %t: forgotten", known)
		}
	}
}

// TestAKnownTargetRefusesTheSame: as an unknown one does.
func TestAKnownTargetRefusesTheSame(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, data string
		want       wire.Reason
	}{
		{"no name", string(helloOf(t, &tls.Config{InsecureSkipVerify: true})), wire.ReasonNoName},
		{"other protocol", "SSH-2.0-x y\r\n", wire.ReasonNoName},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", wire.ReasonMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			decide, _ := byName(t, wire.ResultVerify)
			s, b := knows(t, "192.0.2.1:443", decide)
			expectReset(t, to(t, s, "192.0.2.1:443"), c.data)
			if got := get(t, b.refused); got.Reason != c.want {
				t.Errorf("%+v", got)
			}
			if r := get(t, b.asked); r.Open.Name != "" || r.Open.Shown != "" || len(b.asked) != 0 {
				t.Errorf("asked %+v and %d times more", r.Open, len(b.asked))
			}
		})
	}
	t.Run("another name", func(t *testing.T) {
		decide, _ := byName(t, wire.ResultVerify)
		s, b := knows(t, "192.0.2.1:443", decide)
		expectReset(t, to(t, s, "192.0.2.1:443"), string(helloOf(t, &tls.Config{ServerName: "b.example"})))
		if r := get(t, b.asked); r.Open.Name != "b.example" {
			t.Errorf("asked %+v", r.Open)
		}
	})
}

// TestNewRulesMayWantNoName: for a known target, bytes that were read are passed on, a silent
// client may pass, and the target is forgotten.
func TestNewRulesMayWantNoName(t *testing.T) {
	t.Parallel()
	for _, first := range []wire.Result{wire.ResultAllowed, wire.ResultVerifyDeny} {
		for _, data := range []string{"", "SSH-2.0-x y\r\n", fmt.Sprintf(requestHead, "192.0.2.1")} {
			t.Run(fmt.Sprintf("%s %.3q", first, data), func(t *testing.T) {
				file, far := outside(t)
				var last atomic.Value
				decide := func(r wire.Request) wire.Answer {
					last.Store(r.Open.Shown)
					if r.Open.Shown == "" && first == wire.ResultVerifyDeny {
						return wire.Answer{Result: first}
					}
					return wire.Answer{Result: wire.ResultAllowed, Number: 7, Files: []*os.File{file}}
				}
				s, _ := knows(t, "192.0.2.1:80", decide)
				if data == "" {
					s.waits.quiet = quietTimeout / 20
				}
				near := dial(t, to(t, s, "192.0.2.1:80"))
				_, err := io.WriteString(near, data)
				check(t, err)
				expectSpeech(t, near, far, data)
				if want := map[wire.Result]wire.Shown{wire.ResultVerifyDeny: wire.ShownNothing}[first]; last.Load() != want {
					t.Errorf("asked with %q last", last.Load())
				}
				if s.named.has(netip.MustParseAddrPort("192.0.2.1:80")) {
					t.Error("still known")
				}
			})
		}
	}
}

// expectSpeech lets the server send first, and checks what the client sent.
func expectSpeech(t *testing.T, near, far *net.TCPConn, sent string) {
	t.Helper()
	_, err := io.WriteString(far, "hello")
	check(t, err)
	expectText(t, near, "hello")
	expectText(t, far, sent)
}

func TestTheMemoryOfTargetsIsBounded(t *testing.T) {
	t.Parallel()
	n := newNamed()
	for port := range 3 * namedTargets {
		n.learn(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(port)), wire.ResultVerify)
		if len(n.targets) > namedTargets {
			t.Fatalf("%d targets", len(n.targets))
		}
	}
}
