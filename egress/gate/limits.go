package gate

import (
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"

	"clove.run/clove/egress/wire"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// errBytes ends a relay when the agent's bytes are used up.
var errBytes = errors.New("the agent's bytes are used up")

const (
	// filesOfConnection is the largest number of descriptors of one connection: two
	// sockets, the second one twice while it is passed, and two pipe ends for each
	// direction that is moving data.
	filesOfConnection = 7
	// spareFiles are reserved for listeners, the channel, DNS over TCP and Go's runtime.
	spareFiles = 320
)

// limits enforces the agent's limits in the gate. The broker enforces them again, because a
// gate may be taken over.
type limits struct {
	open    atomic.Int64
	maxOpen int64
	rate    *rate.Limiter
	bytes   budget
}

// newLimits never allows more connections than the process has descriptors for: without a
// free one, recvmsg(2) drops the socket of an answer, and the broker would count it as open
// for ever.
func newLimits(configured wire.Limits) (*limits, error) {
	var files unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &files); err != nil {
		return nil, fmt.Errorf("cannot read the limit of open files: %w", err)
	}
	fits := (int64(min(files.Cur, math.MaxInt32)) - spareFiles) / filesOfConnection
	if fits < 1 {
		return nil, fmt.Errorf("cannot serve with %d open files", files.Cur)
	}
	l := &limits{maxOpen: fits, rate: rate.NewLimiter(rate.Inf, 0)}
	if configured.Connections > 0 {
		l.maxOpen = min(fits, int64(configured.Connections))
	}
	if configured.PerSecond > 0 {
		l.rate = rate.NewLimiter(rate.Limit(configured.PerSecond), 2*configured.PerSecond)
	}
	if configured.Bytes > 0 {
		l.bytes.limited = true
		l.bytes.left.Store(configured.Bytes)
	}
	return l, nil
}

// admit counts one more connection or flow, or returns the reason why not. Each admit that
// succeeded needs one release.
func (l *limits) admit() wire.Reason {
	if l.bytes.empty() {
		return wire.ReasonBytes
	}
	if !l.rate.Allow() {
		return wire.ReasonRate
	}
	if l.open.Add(1) > l.maxOpen {
		l.open.Add(-1)
		return wire.ReasonConnections
	}
	return ""
}

func (l *limits) release() { l.open.Add(-1) }

// limitBuffers gives connections beyond wire.LargeBuffers small buffers.
func (l *limits) limitBuffers(conn *net.TCPConn) {
	if l.open.Load() <= wire.LargeBuffers {
		return
	}
	// Errors do not matter: the connection works with the kernel's buffers too.
	_ = conn.SetReadBuffer(wire.SmallBufferBytes)
	_ = conn.SetWriteBuffer(wire.SmallBufferBytes)
}

// budget is what all connections together may still transfer.
type budget struct {
	limited bool
	left    atomic.Int64
}

func (b *budget) empty() bool { return b.limited && b.left.Load() <= 0 }

// take reserves up to n bytes in advance, so that concurrent connections cannot spend a byte twice.
func (b *budget) take(n int64) int64 {
	if !b.limited {
		return n
	}
	for {
		left := b.left.Load()
		got := min(n, left)
		if got <= 0 {
			return 0
		}
		if b.left.CompareAndSwap(left, left-got) {
			return got
		}
	}
}

// give returns bytes that were reserved but not transferred.
func (b *budget) give(n int64) {
	if b.limited {
		b.left.Add(n)
	}
}
