package gate

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"clove.run/clove/egress/wire"
	"clove.run/clove/internal/descriptor"
)

// TestIdleConnectionsAreBounded: connections above the limit are reset at once, and each one
// that ends lets another one in. Without a limit all of them stay.
func TestIdleConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 5
	for _, c := range []struct{ limit, want int }{{limit, limit}, {0, 3 * limit}} {
		file, _ := outside(t)
		s, b := begin(t, wire.Limits{Connections: c.limit}, func(wire.Request) wire.Answer {
			return wire.Answer{Result: wire.ResultVerify}
		})
		file.Close()
		var port atomic.Uint32 // for a known target the gate would wait for quietTimeout before each request
		address := front(t, s, func(c *net.TCPConn) {
			s.connect(c, netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(port.Add(1))))
		})
		alive := 0
		var last interface{ Close() error }
		for range 3 * limit {
			near, err := net.Dial("tcp4", address)
			if errors.Is(err, syscall.ECONNRESET) {
				continue // the reset came before connect returned
			}
			check(t, err)
			defer near.Close()
			reset := make(chan error, 1)
			go func() { _, err := near.Read(make([]byte, 1)); reset <- err }()
			select {
			case <-b.asked:
				alive, last = alive+1, near
			case err := <-reset:
				if !errors.Is(err, syscall.ECONNRESET) {
					t.Error(err)
				}
			}
		}
		if alive != c.want {
			t.Errorf("limit %d: %d are open", c.limit, alive)
		}
		if c.limit == 0 {
			continue
		}
		if got := get(t, b.refused); got.Reason != wire.ReasonConnections {
			t.Errorf("%+v", got)
		}
		check(t, last.Close())
		if got := get(t, b.refused); got.Reason != wire.ReasonNoName && got.Reason != wire.ReasonConnections {
			t.Errorf("%+v", got)
		}
	}
}

// TestWithoutDescriptorsClientsAreRefused: the spare descriptor is used for each of them, and
// is there again for the next.
func TestWithoutDescriptorsClientsAreRefused(t *testing.T) {
	t.Parallel()
	s, b := begin(t, wire.Limits{}, nil)
	any, err := net.Listen("tcp4", "127.0.0.1:0")
	check(t, err)
	defer any.Close()
	listener := any.(*net.TCPListener)
	for range 3 {
		near := dial(t, listener.Addr().String())
		s.shed(listener)
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
	}
	if got := get(t, b.refused); got.Reason != wire.ReasonConnections || s.spare == nil {
		t.Errorf("%+v, spare %v", got, s.spare)
	}
	s.shed(listener) // no client waits: it returns
}

func TestNewConnectionsPerSecond(t *testing.T) {
	t.Parallel()
	const perSecond = 3
	s, b := begin(t, wire.Limits{PerSecond: perSecond}, func(wire.Request) wire.Answer {
		return wire.Answer{Result: wire.ResultDenied}
	})
	address := to(t, s, "192.0.2.1:443")
	for range 20 {
		expectReset(t, address, "")
	}
	if n := len(b.asked); n < 2*perSecond || n > 2*perSecond+2 {
		t.Errorf("%d of 20 were asked for, with a burst of %d", n, 2*perSecond)
	}
	if got := get(t, b.refused); got.Reason != wire.ReasonRate {
		t.Errorf("%+v", got)
	}
}

// TestTheBudgetAddsUp: whatever concurrent users take and give back, there is never more than
// at the beginning.
func TestTheBudgetAddsUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(0, 1<<20).Draw(t, "total")
		steps := rapid.SliceOf(rapid.Int64Range(1, 1<<18)).Draw(t, "steps")
		b := budget{limited: true}
		b.left.Store(total)
		var spent sync.Map
		var all sync.WaitGroup
		for i, n := range steps {
			all.Go(func() {
				got := b.take(n)
				b.give(got / 2)
				spent.Store(i, got-got/2)
			})
		}
		all.Wait()
		var sum int64
		spent.Range(func(_, v any) bool { sum += v.(int64); return true })
		if sum+b.left.Load() != total || b.left.Load() < 0 {
			t.Fatalf("%d spent and %d left of %d", sum, b.left.Load(), total)
		}
	})
}

// TestRefusalsAreNotAFlood: equal refusals are sent once a second, and all of them never
// faster than the rate.
func TestRefusalsAreNotAFlood(t *testing.T) {
	t.Parallel()
	r := newRefusals(nil)
	now := time.Now()
	one := wire.Refused{Target: netip.MustParseAddrPort("192.0.2.1:1"), Reason: wire.ReasonRate}
	if !r.worthSending(one, now) || r.worthSending(one, now) || r.worthSending(one, now.Add(refusalsForget/2)) || !r.worthSending(one, now.Add(refusalsForget)) {
		t.Error("the same was sent twice, or never again")
	}
	sent := 0
	for port := range uint16(10_000) {
		one.Target = netip.AddrPortFrom(one.Target.Addr(), port)
		if r.worthSending(one, now.Add(refusalsForget)) {
			sent++
		}
	}
	if sent > refusalsBurst || len(r.sent) > refusalsRemember {
		t.Errorf("%d were sent, %d are remembered", sent, len(r.sent))
	}
}

// TestACrowdHasSmallBuffers: nothing else bounds the kernel's memory for an agent that opens
// all connections that it may and reads nothing.
func TestACrowdHasSmallBuffers(t *testing.T) {
	t.Parallel()
	for open, want := range map[int64]bool{wire.LargeBuffers: false, wire.LargeBuffers + 1: true} {
		conn, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		check(t, err)
		defer conn.Close()
		near := dial(t, conn.Addr().String())
		var l limits
		l.open.Store(open)
		l.limitBuffers(near)
		check(t, descriptor.Use(near, func(fd int) error {
			size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
			if small := size == 2*wire.SmallBufferBytes; err != nil || small != want {
				t.Errorf("%d open: %d bytes to send, %v", open, size, err)
			}
			size, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
			if err != nil || (want && size != 2*wire.SmallBufferBytes) {
				t.Errorf("%d open: %d bytes to receive, %v", open, size, err)
			}
			return nil
		}))
	}
}
