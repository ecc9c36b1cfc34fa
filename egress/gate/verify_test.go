package gate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"clove.run/clove/egress/wire"
)

// byName is a broker with one rule: a.example, on 80 and 443.
func byName(t *testing.T, first wire.Result) (func(wire.Request) wire.Answer, func(string)) {
	file, far := outside(t)
	var given atomic.Bool
	expect := func(want string) { t.Helper(); expectText(t, far, want) }
	return func(r wire.Request) wire.Answer {
		switch {
		case r.Open.Shown == "":
			return wire.Answer{Result: first}
		case r.Open.Name == "a.example", r.Open.Shown == wire.ShownNothing && first == wire.ResultVerifyDeny:
			answer := wire.Answer{Result: wire.ResultAllowed, Number: 7}
			if !given.Swap(true) {
				answer.Files = []*os.File{file}
			}
			return answer
		}
		return wire.Answer{Result: wire.ResultDenied, Rule: "no rule for it", Hint: "add --allow " + r.Open.Name}
	}, expect
}

const requestHead = "GET / HTTP/1.1\r\nHost: %s\r\n\r\n"

// TestTheShownNameOpens: sent in many pieces, and every byte arrives.
func TestTheShownNameOpens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, target, data string }{
		{"http", "192.0.2.1:80", fmt.Sprintf(requestHead, "a.example") + "and more"},
		{"tls", "192.0.2.1:443", string(helloOf(t, &tls.Config{ServerName: "a.example"})) + "and more"},
	} {
		t.Run(c.name, func(t *testing.T) {
			decide, expect := byName(t, wire.ResultVerify)
			s, b := begin(t, wire.Limits{}, decide)
			near := dial(t, to(t, s, c.target))
			for piece := range strings.SplitSeq(c.data, "a") {
				_, err := io.WriteString(near, piece)
				check(t, err)
				_, err = io.WriteString(near, "a")
				check(t, err)
			}
			expect(c.data)
			if r := get(t, b.asked); r.Open.Name != "" || r.Open.Target.String() != c.target {
				t.Errorf("first %+v", r.Open)
			}
			if r := get(t, b.asked); r.Open.Name != "a.example" || string(r.Open.Shown) != c.name {
				t.Errorf("second %+v", r.Open)
			}
		})
	}
}

// TestWhatTheGateRefuses: it resets and reports, whatever the port, and sends no second
// request to the broker.
func TestWhatTheGateRefuses(t *testing.T) {
	t.Parallel()
	hello := helloOf(t, &tls.Config{ServerName: "a.example"})
	for _, c := range []struct {
		name, data string
		want       wire.Reason
	}{
		{"encrypted", string(withExtension(hello, extensionECH, []byte{1})), wire.ReasonEncrypted},
		{"no name", string(helloOf(t, &tls.Config{InsecureSkipVerify: true})), wire.ReasonNoName},
		{"other protocol", "SSH-2.0-x y\r\n", wire.ReasonNoName},
		{"two hosts", "GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", wire.ReasonMalformed},
		{"endless head", "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", openingBytes), wire.ReasonTooLong},
		{"endless hello", "\x16\x03\x01\x40\x00\x01\x00\xff\xff" + strings.Repeat("x", openingBytes), wire.ReasonTooLong},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", wire.ReasonHTTP2},
	} {
		t.Run(c.name, func(t *testing.T) {
			decide, _ := byName(t, wire.ResultVerify)
			s, b := begin(t, wire.Limits{}, decide)
			expectReset(t, to(t, s, "192.0.2.1:443"), c.data)
			if got := get(t, b.refused); got.Reason != c.want || got.Target.String() != "192.0.2.1:443" {
				t.Errorf("%+v", got)
			}
			if len(b.asked) != 1 {
				t.Errorf("asked %d times", len(b.asked))
			}
		})
	}
}

// TestADrippingClientEnds: at the deadline of the whole opening, however often it sends: each
// byte would be in time for a deadline that starts again.
func TestADrippingClientEnds(t *testing.T) {
	for _, mayPass := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			began := time.Now()
			var attack sync.WaitGroup
			attack.Go(func() {
				for range 1000 {
					if _, err := io.WriteString(far, "G"); err != nil {
						return
					}
					time.Sleep(openingTimeout / 50) // the pace of the attack
				}
			})
			got := clientWaits().peek(near, 80, mayPass)
			took := time.Since(began)
			near.Close()
			attack.Wait()
			if got.reason != wire.ReasonTooSlow || took != openingTimeout {
				t.Errorf("may pass %t: %s after %s", mayPass, got.reason, took)
			}
		})
	}
}

// TestASilentClientIsWaitedFor: for as long as its protocol needs, and no longer.
func TestASilentClientIsWaitedFor(t *testing.T) {
	for mayPass, want := range map[bool]time.Duration{false: openingTimeout, true: quietTimeout} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			defer far.Close()
			began := time.Now()
			got := clientWaits().peek(near, 443, mayPass)
			if took := time.Since(began); took != want || got.silent != mayPass || (got.reason == wire.ReasonTooSlow) == mayPass {
				t.Errorf("may pass %t: %+v after %s", mayPass, got, took)
			}
		})
	}
}

// TestASilentClientMayPass: if only names are denied, and in no other case.
func TestASilentClientMayPass(t *testing.T) {
	t.Parallel()
	decide, _ := byName(t, wire.ResultVerifyDeny)
	s, b := begin(t, wire.Limits{}, decide)
	s.waits.quiet = quietTimeout / 20
	dial(t, to(t, s, "192.0.2.1:443"))
	get(t, b.asked)
	if r := get(t, b.asked); r.Open.Shown != wire.ShownNothing || r.Open.Name != "" {
		t.Errorf("%+v", r.Open)
	}
}

// TestALateNameIsAsked: silence does not get a client past a denied name. A connection with an
// allowed name, or without one, continues.
func TestALateNameIsAsked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data   string
		passes bool
	}{
		{fmt.Sprintf(requestHead, "a.example"), true},
		{fmt.Sprintf(requestHead, "b.example"), false},
		{"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n", false},
		{"\x00\x01", true},
	} {
		decide, expect := byName(t, wire.ResultVerifyDeny)
		s, b := begin(t, wire.Limits{}, decide)
		s.waits.quiet = quietTimeout / 20 // the client sends after that time
		near := dial(t, to(t, s, "192.0.2.1:443"))
		get(t, b.asked)
		if r := get(t, b.asked); r.Open.Shown != wire.ShownNothing {
			t.Errorf("%+v", r.Open)
		}
		_, err := io.WriteString(near, c.data)
		check(t, err)
		if c.passes {
			expect(c.data)
		} else if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q: %v, want a reset", c.data, err)
		}
	}
}

// TestWhatMayPassWithoutAName: it also tries what may not pass if only names are denied.
func TestWhatMayPassWithoutAName(t *testing.T) {
	t.Parallel()
	hello := helloOf(t, &tls.Config{ServerName: "b.example"})
	for _, c := range []struct {
		name, data string
		shown      wire.Shown
		shows      string
		reason     wire.Reason
	}{
		{"ssh", "SSH-2.0-x y\r\n", wire.ShownNothing, "", ""},
		{"binary", "\x00\x01", wire.ShownNothing, "", ""},
		{"hello without a name", string(helloOf(t, &tls.Config{InsecureSkipVerify: true})), wire.ShownNothing, "", ""},
		{"request to an address", fmt.Sprintf(requestHead, "192.0.2.1"), wire.ShownNothing, "", ""},
		{"hello", string(hello), wire.ShownTLS, "b.example", ""},
		{"request", fmt.Sprintf(requestHead, "b.example"), wire.ShownHTTP, "b.example", ""},
		{"hidden name", string(withExtension(hello, extensionECH, nil)), "", "", wire.ReasonEncrypted},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "", wire.ReasonHTTP2},
		{"broken hello", "\x16\x03\x01\x00\x01\x01", "", "", wire.ReasonMalformed},
		{"lenient server's request", "\r\nGET / HTTP/1.1\nHost: b.example\r\n\r\n", "", "", wire.ReasonMalformed},
	} {
		got := clientWaits().peek(once([]byte(c.data)), 443, true)
		if got.shown != c.shown || got.name != c.shows || got.reason != c.reason {
			t.Errorf("%s: %q %q %q", c.name, got.shown, got.name, got.reason)
		}
	}
}
