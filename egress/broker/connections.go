package broker

import (
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"clove.run/clove/egress"
	"clove.run/clove/egress/wire"
)

// connection was given to the gate, which has not reported its end yet. Decision 14
// (docs/decisions) says why the broker keeps a duplicate of the socket.
type connection struct {
	number  uint64
	kind    Kind
	asked   egress.Connection // the question to the rules, with the address that was dialled
	verdict egress.Verdict    // their answer
	rules   *egress.Rules     // the rules that answered; nil: add asks the current ones
	own     *egress.Rules     // people's answer for this connection alone; nil: none
	inward  bool              // a published port: bytes that this host sent are received by the agent
	swapped *os.File          // what the gate gets in place of the socket; nil: the socket

	fd     int             // a duplicate of its socket; -1 after cut or release
	closes *sync.WaitGroup // closes under way
	last   traffic         // the bytes when fd was released
}

// traffic is what the kernel has counted. It does not count UDP.
func (c *connection) traffic() traffic {
	if c.fd < 0 || c.asked.Proto == egress.UDP {
		return c.last
	}
	counted, err := tcpTraffic(c.fd)
	if err != nil {
		return c.last // cannot fail on a TCP socket that is open
	}
	if c.inward {
		counted.received, counted.sent = counted.sent, counted.received
	}
	return counted
}

// cut ends the connection. Its number stays in use until the gate reports its end.
func (c *connection) cut() {
	if c.fd < 0 {
		return
	}
	end := cut
	if c.asked.Proto == egress.UDP {
		end = endDatagrams
	}
	// The only error is that the peer has closed already.
	_ = end(c.fd)
	c.release()
}

// release stores the byte counts and closes the duplicate. Until then a close by the gate
// does not end the connection, because the duplicate keeps the socket, and with it
// TCP_INFO.
func (c *connection) release() {
	if c.fd < 0 {
		return
	}
	c.last = c.traffic()
	// The gate may have set SO_LINGER. The last close(2) then waits for a peer that
	// does not read, so it must not happen here, where the caller holds the lock.
	fd := c.fd
	c.closes.Go(func() { closeSocket(fd) })
	c.fd = -1
}

// connections are all open connections, and the limits on them. One passes through them
// like this: reserve takes a place under the limits, while it is dialled; add checks the
// rules once more and numbers it, or giveBack ends the reservation. From then on the gate
// has the socket. cut ends it from here, but its number stays in open, because an honest
// gate still reports its end; closed removes it, and adds its bytes to over.
type connections struct {
	limits wire.Limits
	now    func() time.Time
	pace   *rate.Limiter

	mu       sync.Mutex // guards the fields below, and each connection's fd
	rules    *egress.Rules
	open     map[uint64]*connection
	dialling int // places reserved for connections that are not open yet
	number   uint64
	opened   int64
	peak     int
	over     traffic         // of closed connections
	used     bool            // limits.Bytes is used up, or Serve has ended
	waiting  []chan struct{} // closed when no connection is open, see Drain

	closes sync.WaitGroup // closes of descriptors under way
}

// newConnections allows bursts of twice the rate, like the gate.
func newConnections(limits wire.Limits, rules *egress.Rules, now func() time.Time) *connections {
	pace := rate.NewLimiter(rate.Inf, 0)
	if limits.PerSecond > 0 {
		pace = rate.NewLimiter(rate.Limit(limits.PerSecond), 2*limits.PerSecond)
	}
	return &connections{limits: limits, now: now, pace: pace, rules: rules, open: map[uint64]*connection{}}
}

// currentRules returns the rules in force. Replace may change them during one request, so
// add checks them once more.
func (all *connections) currentRules() *egress.Rules {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.rules
}

// reserve reserves a place for one connection; add or giveBack ends the reservation. It
// returns the limit that forbids the connection, "" if none does.
func (all *connections) reserve() wire.Reason {
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case all.used:
		return wire.ReasonBytes
	// Reserved places count, or a burst of slow dials would exceed the limit.
	case all.limits.Connections > 0 && len(all.open)+all.dialling >= all.limits.Connections:
		return wire.ReasonConnections
	case !all.pace.AllowN(all.now(), 1):
		return wire.ReasonRate
	}
	all.dialling++
	return ""
}

// giveBack ends a reservation whose dial failed.
func (all *connections) giveBack() {
	all.mu.Lock()
	defer all.mu.Unlock()
	defer all.notifyIdle()
	all.dialling--
}

// add adds c, for which a place was reserved, to the open connections, and gives it its
// number. While it was dialled, the rules may have been replaced or the bytes used up. Then
// it is refused, and the caller still owns its fd.
func (all *connections) add(c *connection) (egress.Verdict, wire.Reason) {
	all.mu.Lock()
	defer all.mu.Unlock()
	defer all.notifyIdle()
	all.dialling--
	if all.used {
		return c.verdict, wire.ReasonBytes
	}
	if c.ruled() && c.rules != all.rules {
		if verdict := judgeWith(all.rules, c.own, c.asked); !verdict.Allowed {
			return verdict, ""
		}
	}
	all.number++
	c.number, c.closes = all.number, &all.closes
	all.open[c.number] = c
	// Now that its rank is known. The first ones keep the buffers that the kernel sizes.
	if len(all.open) > wire.LargeBuffers && c.asked.Proto == egress.TCP {
		limitBuffers(c.fd)
	}
	all.opened++
	all.peak = max(all.peak, len(all.open))
	return c.verdict, ""
}

// ruled reports whether rules apply: the user opened a published port explicitly.
func (c *connection) ruled() bool { return c.kind != KindPublish }

// settled reports whether verdict allows the connection as it was requested: it is allowed,
// and if a name must be seen first, the first bytes were read.
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

// judge is the final decision of the rules: a verdict whose condition is not met is a denial.
func judge(rules *egress.Rules, asked egress.Connection) egress.Verdict {
	verdict := rules.Connect(asked)
	if verdict.Allowed && !settled(verdict, asked) {
		return egress.Verdict{Rule: verdict.Rule, Source: verdict.Source, Reason: egress.ReasonNoName, Detail: refusals[wire.ReasonNoName]}
	}
	return verdict
}

// with asks rules, and where they mention nothing people's answer for one connection, if there is one.
func with(rules, own *egress.Rules, ask func(*egress.Rules) egress.Verdict) egress.Verdict {
	verdict := ask(rules)
	if own != nil && unmentioned(verdict) {
		return ask(own)
	}
	return verdict
}

// unmentioned reports whether no rule decided: what a rule denies is no matter of people's.
func unmentioned(v egress.Verdict) bool {
	return !v.Allowed && (v.Reason == egress.ReasonNoRule || v.Reason == egress.ReasonPort)
}

// judgeWith is judge with people's answer for one connection.
func judgeWith(rules, own *egress.Rules, asked egress.Connection) egress.Verdict {
	return with(rules, own, func(r *egress.Rules) egress.Verdict { return judge(r, asked) })
}

// closed removes the connection number and returns it with its byte counts; nil if it is
// not open. said are the gate's counts. They are used for UDP, which the kernel does not
// count, and to correct the one byte that it counts for a FIN.
func (all *connections) closed(number uint64, said traffic) (c *connection, bytes traffic, wasCut bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	defer all.notifyIdle()
	c = all.open[number]
	if c == nil {
		return nil, traffic{}, false
	}
	delete(all.open, number)
	// Before the release, which sets it: a connection that was cut has been logged already.
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

// replace puts rules in force and cuts what they forbid. It returns what it cut, with the
// new verdicts.
func (all *connections) replace(rules *egress.Rules) []ending {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.rules = rules
	var ended []ending
	for _, c := range all.open {
		if c.fd < 0 || !c.ruled() {
			continue
		}
		if verdict := judgeWith(rules, c.own, c.asked); !verdict.Allowed {
			c.cut()
			ended = append(ended, ending{c, verdict, c.last})
		}
	}
	return ended
}

// ending is a connection that the broker cut, with the verdict and its bytes.
type ending struct {
	connection *connection
	verdict    egress.Verdict
	bytes      traffic
}

// charge counts a question for the agent, or an answer, with the bytes of the connections. It
// counts nothing and returns false where they are used up, or would be.
func (all *connections) charge(bytes traffic) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.used {
		return false
	}
	if all.limits.Bytes > 0 {
		if sum := all.sum().plus(bytes); sum.received+sum.sent > all.limits.Bytes {
			return false
		}
	}
	all.over = all.over.plus(bytes)
	return true
}

// exhaust cuts everything when more bytes than the limit were transferred.
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

// end cuts and removes everything. Afterwards add refuses.
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

// cutAll requires all.mu. Cut connections stay in open, so that the gate's Closed is still valid.
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

// sum requires all.mu.
func (all *connections) sum() traffic {
	sum := all.over
	for _, c := range all.open {
		sum = sum.plus(c.traffic())
	}
	return sum
}
