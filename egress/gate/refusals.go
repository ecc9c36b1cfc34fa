package gate

import (
	"net/netip"
	"sync/atomic"
	"time"

	"clove.run/clove/egress/wire"
	"golang.org/x/time/rate"
)

// The record of refusals is for people: an agent that floods the gate must not
// flood the broker through it.
const (
	refusalsPerSecond = 50
	refusalsBurst     = 100
	refusalsWaiting   = 64              // beyond, they are only counted
	refusalsRemember  = 256             // of those told
	refusalsForget    = 1 * time.Second // and when the same is told again
)

// refusals tells the broker what the gate itself turned away.
type refusals struct {
	conn    *wire.Conn
	waiting chan wire.Refused
	rate    *rate.Limiter
	silent  atomic.Int64               // refusals since the last message
	last    wire.Refused               // only report touches it and told
	told    map[wire.Refused]time.Time // when each was told
}

func newRefusals(conn *wire.Conn) *refusals {
	return &refusals{
		conn: conn, waiting: make(chan wire.Refused, refusalsWaiting),
		rate: rate.NewLimiter(refusalsPerSecond, refusalsBurst), told: map[wire.Refused]time.Time{},
	}
}

// tcp and udp never wait.
func (r *refusals) tcp(target netip.AddrPort, name string, reason wire.Reason) {
	r.add(wire.Refused{Target: target, Name: name, Reason: reason})
}

func (r *refusals) udp(target netip.AddrPort, reason wire.Reason) {
	r.add(wire.Refused{Target: target, UDP: true, Reason: reason})
}

func (r *refusals) add(refused wire.Refused) {
	r.silent.Add(1)
	select {
	case r.waiting <- refused:
	default:
	}
}

// report sends until done, and then what waits: an agent's last refusal has its
// target as every other has.
func (r *refusals) report(done <-chan struct{}) {
	rest := time.NewTicker(refusalsForget)
	defer rest.Stop()
	for {
		select {
		case <-done:
			for len(r.waiting) > 0 {
				r.take(<-r.waiting)
			}
			r.tell(r.last)
			return
		case refused := <-r.waiting:
			r.take(refused)
		case <-rest.C:
			r.tell(r.last)
		}
	}
}

// take tells of one that is worth it.
func (r *refusals) take(refused wire.Refused) {
	if r.last = refused; r.news(refused, time.Now()) {
		r.tell(refused)
	}
}

// tell says how many there were, if there were any.
func (r *refusals) tell(refused wire.Refused) {
	if refused.Count = r.silent.Swap(0); refused.Count == 0 {
		return
	}
	// A channel that is gone ends the process by its receiving side.
	_ = r.conn.SendRequest(wire.Request{Refused: &refused})
}

// news says whether refused is worth a message.
func (r *refusals) news(refused wire.Refused, now time.Time) bool {
	if last, ok := r.told[refused]; ok && now.Sub(last) < refusalsForget {
		return false
	}
	if !r.rate.AllowN(now, 1) {
		return false
	}
	if len(r.told) >= refusalsRemember {
		clear(r.told)
	}
	r.told[refused] = now
	return true
}
