package gate

import (
	"net/netip"
	"sync/atomic"
	"time"

	"clove.run/clove/egress/wire"
	"golang.org/x/time/rate"
)

// Reports of refusals are for users. An agent that floods the gate must not flood the
// broker with them.
const (
	refusalsPerSecond = 50
	refusalsBurst     = 100
	refusalsWaiting   = 64              // further ones are counted only
	refusalsRemember  = 256             // refusals that were sent
	refusalsForget    = 1 * time.Second // after which the same one is sent again
)

// refusals reports to the broker what the gate itself refused.
type refusals struct {
	conn    *wire.Conn
	waiting chan wire.Refused
	rate    *rate.Limiter
	silent  atomic.Int64               // refusals since the last message
	last    wire.Refused               // accessed by report's goroutine only, like sent
	sent    map[wire.Refused]time.Time // when each was sent
}

func newRefusals(conn *wire.Conn) *refusals {
	return &refusals{
		conn: conn, waiting: make(chan wire.Refused, refusalsWaiting),
		rate: rate.NewLimiter(refusalsPerSecond, refusalsBurst), sent: map[wire.Refused]time.Time{},
	}
}

// tcp and udp never block.
func (r *refusals) tcp(target netip.AddrPort, name string, reason wire.Reason) {
	r.add(wire.Refused{Target: target, Name: name, Reason: reason})
}

func (r *refusals) udp(target netip.AddrPort, reason wire.Reason) {
	r.add(wire.Refused{Target: target, UDP: true, Reason: reason})
}

// add counts every refusal, but drops its details if the queue is full, so that a flood
// cannot block the gate.
func (r *refusals) add(refused wire.Refused) {
	r.silent.Add(1)
	select {
	case r.waiting <- refused:
	default:
	}
}

// report sends refusals until done, and then those that are queued, so that the last one is
// reported with its target too.
func (r *refusals) report(done <-chan struct{}) {
	rest := time.NewTicker(refusalsForget)
	defer rest.Stop()
	for {
		select {
		case <-done:
			for len(r.waiting) > 0 {
				r.take(<-r.waiting)
			}
			r.send(r.last)
			return
		case refused := <-r.waiting:
			r.take(refused)
		case <-rest.C:
			r.send(r.last)
		}
	}
}

// take sends refused if it is worth a message.
func (r *refusals) take(refused wire.Refused) {
	if r.last = refused; r.worthSending(refused, time.Now()) {
		r.send(refused)
	}
}

// send sends refused with the number of refusals since the last message, if there are any.
func (r *refusals) send(refused wire.Refused) {
	if refused.Count = r.silent.Swap(0); refused.Count == 0 {
		return
	}
	// An error means that the channel is gone; receive then ends the process.
	_ = r.conn.SendRequest(wire.Request{Refused: &refused})
}

// worthSending reports whether refused was not sent recently, within the rate.
func (r *refusals) worthSending(refused wire.Refused, now time.Time) bool {
	if last, ok := r.sent[refused]; ok && now.Sub(last) < refusalsForget {
		return false
	}
	if !r.rate.AllowN(now, 1) {
		return false
	}
	if len(r.sent) >= refusalsRemember {
		clear(r.sent)
	}
	r.sent[refused] = now
	return true
}
