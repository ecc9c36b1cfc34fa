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

// errBytes ends a relay whose agent has used up its bytes.
var errBytes = errors.New("the agent's bytes are used up")

const (
	// filesOfConnection is the most that one connection holds at a time: two
	// sockets, the second twice while it changes hands, and two ends of a pipe
	// for each direction that has data under way.
	filesOfConnection = 7
	// spareFiles are for listeners, the channel, DNS over TCP and Go's runtime.
	spareFiles = 320
)

// limits holds the agent to its limits.
type limits struct {
	open    atomic.Int64
	maxOpen int64
	rate    *rate.Limiter
	bytes   budget
}

// newLimits never allows more connections than the process has descriptors
// for: a gate without any would lose an answer's socket, and with it the count.
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

// admit counts one more connection or flow, or says why not. Each that was
// admitted is released once.
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

// narrow keeps the buffers of a connection small that is one of a crowd.
func (l *limits) narrow(conn *net.TCPConn) {
	if l.open.Load() <= wire.Crowd {
		return
	}
	// Neither fails on an open socket; with the kernel's own it serves as well.
	_ = conn.SetReadBuffer(wire.CrowdBuffer)
	_ = conn.SetWriteBuffer(wire.CrowdBuffer)
}

// budget is what all connections together may still carry.
type budget struct {
	limited bool
	left    atomic.Int64
}

func (b *budget) empty() bool { return b.limited && b.left.Load() <= 0 }

// take reserves up to n bytes, so that connections that run at the same time
// cannot spend a byte twice.
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

// give returns what was reserved and not carried.
func (b *budget) give(n int64) {
	if b.limited {
		b.left.Add(n)
	}
}
