package broker

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"clove.run/clove/egress"
	"clove.run/clove/egress/wire"
)

// connection is one that was handed out and that the gate has not yet said is
// over.
type connection struct {
	number  uint64
	kind    Kind
	asked   egress.Connection // what the rules were asked, with the address that was dialled
	verdict egress.Verdict    // what they said
	rules   *egress.Rules     // which ones were asked last; nil asks add's
	inward  bool              // a published port: sent bytes are the agent's received ones

	fd     int             // a duplicate of its socket; -1 once it is cut
	closes *sync.WaitGroup // those under way
	last   traffic         // when it was cut
}

// traffic is what the kernel counted; nothing for UDP, for which it does not.
func (c *connection) traffic() traffic {
	if c.fd < 0 || c.asked.Proto == egress.UDP {
		return c.last
	}
	counted, err := tcpTraffic(c.fd)
	if err != nil {
		return c.last // cannot happen to a TCP socket that is held
	}
	if c.inward {
		counted.received, counted.sent = counted.sent, counted.received
	}
	return counted
}

// cut ends it. Its number stays taken until the gate says Closed.
func (c *connection) cut() {
	if c.fd < 0 {
		return
	}
	end := cut
	if c.asked.Proto == egress.UDP {
		end = silence
	}
	// Neither fails on a descriptor that is held: what is left is a peer that was faster.
	_ = end(c.fd)
	c.release()
}

// release keeps the bytes and lets the socket go. Until then no close of the
// gate's ends the connection: the duplicate holds it, and with it TCP_INFO.
func (c *connection) release() {
	if c.fd < 0 {
		return
	}
	c.last = c.traffic()
	// With SO_LINGER, which is the gate's to set, the last close(2) waits for a
	// peer that does not read. Not here: the caller holds the lock.
	fd := c.fd
	c.closes.Go(func() { letGo(fd) })
	c.fd = -1
}

// connections are all that are open, and the limits on them.
type connections struct {
	limits wire.Limits
	now    func() time.Time
	pace   *rate.Limiter

	mu       sync.Mutex // guards the fields below, and each connection's fd
	rules    *egress.Rules
	open     map[uint64]*connection
	dialling int // reserved, not yet open
	number   uint64
	opened   int64
	peak     int
	over     traffic         // of those that are closed
	used     bool            // limits.Bytes is used up
	waiting  []chan struct{} // closed when nothing is open, see Drain

	closes sync.WaitGroup // of descriptors, under way
}

func newConnections(limits wire.Limits, rules *egress.Rules, now func() time.Time) *connections {
	pace := rate.NewLimiter(rate.Inf, 0)
	if limits.PerSecond > 0 {
		pace = rate.NewLimiter(rate.Limit(limits.PerSecond), 2*limits.PerSecond)
	}
	return &connections{limits: limits, now: now, pace: pace, rules: rules, open: map[uint64]*connection{}}
}

// currentRules are those of now: one request may ask several times and see
// several sets, and add has the last word.
func (all *connections) currentRules() *egress.Rules {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.rules
}

// reserve takes the place of one connection, to be given to add or back to
// giveBack. It returns the limit that forbids it, "" when none does.
func (all *connections) reserve() wire.Reason {
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case all.used:
		return wire.ReasonBytes
	case all.limits.Connections > 0 && len(all.open)+all.dialling >= all.limits.Connections:
		return wire.ReasonConnections
	case !all.pace.AllowN(all.now(), 1):
		return wire.ReasonRate
	}
	all.dialling++
	return ""
}

func (all *connections) giveBack() {
	all.mu.Lock()
	defer all.mu.Unlock()
	defer all.tellQuiet()
	all.dialling--
}

// add makes c, whose place was reserved, one of the open ones and gives it its
// number. The rules may have been replaced while it was dialled, and the bytes
// used up: then it is refused, and its fd is still the caller's.
func (all *connections) add(c *connection) (egress.Verdict, wire.Reason) {
	all.mu.Lock()
	defer all.mu.Unlock()
	defer all.tellQuiet()
	all.dialling--
	if all.used {
		return c.verdict, wire.ReasonBytes
	}
	if c.ruled() && c.rules != all.rules {
		if verdict := judge(all.rules, c.asked); !verdict.Allowed {
			return verdict, ""
		}
	}
	all.number++
	c.number, c.closes = all.number, &all.closes
	all.open[c.number] = c
	if len(all.open) > wire.Crowd && c.asked.Proto == egress.TCP {
		narrow(c.fd)
	}
	all.opened++
	all.peak = max(all.peak, len(all.open))
	return c.verdict, ""
}

// ruled: a published port was opened by the user, no rule speaks of it.
func (c *connection) ruled() bool { return c.kind != KindPublish }

// settled tells whether verdict lets the connection through as it was asked:
// allowed, and where a name has to be seen first, it was looked for.
func settled(verdict egress.Verdict, asked egress.Connection) bool {
	switch {
	case !verdict.Allowed:
		return false
	case verdict.Verify == egress.VerifyMust:
		return asked.Looked && asked.Shown != ""
	case verdict.Verify == egress.VerifyDeny:
		return asked.Looked
	}
	return true
}

// judge is the rules' last word: what they allow under a condition that does
// not hold is denied.
func judge(rules *egress.Rules, asked egress.Connection) egress.Verdict {
	verdict := rules.Connect(asked)
	if verdict.Allowed && !settled(verdict, asked) {
		return egress.Verdict{Rule: verdict.Rule, Source: verdict.Source, Reason: egress.ReasonNoName, Detail: refusals[wire.ReasonNoName]}
	}
	return verdict
}

// closed takes number from the open ones and returns it with its bytes, nil
// when there is none. said are the gate's own counts: they are taken where the
// kernel has none, and where they differ by the one byte that the kernel counts
// for a FIN.
func (all *connections) closed(number uint64, said traffic) (c *connection, bytes traffic, wasCut bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	defer all.tellQuiet()
	c = all.open[number]
	if c == nil {
		return nil, traffic{}, false
	}
	delete(all.open, number)
	wasCut = c.fd < 0
	c.release()
	bytes = c.last
	if c.asked.Proto == egress.UDP {
		bytes = said
	}
	bytes = bytes.withoutFIN(said)
	all.over = all.over.plus(bytes)
	return c, bytes, wasCut
}

// replace makes rules the ones that add asks and cuts what they forbid. It
// returns what it cut with the new verdicts.
func (all *connections) replace(rules *egress.Rules) []ending {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.rules = rules
	var ended []ending
	for _, c := range all.open {
		if c.fd < 0 || !c.ruled() {
			continue
		}
		if verdict := judge(rules, c.asked); !verdict.Allowed {
			c.cut()
			ended = append(ended, ending{c, verdict, c.last})
		}
	}
	return ended
}

type ending struct {
	connection *connection
	verdict    egress.Verdict
	bytes      traffic
}

// exhaust cuts everything when more bytes than the limit have gone through.
func (all *connections) exhaust() (cut []ending, isNew bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.limits.Bytes <= 0 || all.used {
		return nil, false
	}
	if sum := all.sum(); sum.received+sum.sent <= all.limits.Bytes {
		return nil, false
	}
	all.used = true
	return all.cutAll(), true
}

// end cuts and forgets everything. Nothing is added afterwards.
func (all *connections) end() []ending {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.used = true
	ended := all.cutAll()
	for _, c := range all.open {
		all.over = all.over.plus(c.last)
	}
	clear(all.open)
	return ended
}

// cutAll wants all.mu held. What is cut stays in open, so that the gate's Closed
// is still understood.
func (all *connections) cutAll() []ending {
	var ended []ending
	for _, c := range all.open {
		if c.fd >= 0 {
			c.cut()
			ended = append(ended, ending{c, c.verdict, c.last})
		}
	}
	return ended
}

// sum wants all.mu held.
func (all *connections) sum() traffic {
	sum := all.over
	for _, c := range all.open {
		sum = sum.plus(c.traffic())
	}
	return sum
}
