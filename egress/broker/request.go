package broker

import (
	"fmt"
	"net/netip"
	"strings"

	"clove.run/clove/egress"
	"clove.run/clove/egress/wire"
)

// untrusted is the error for a request that no honest gate sends. It ends the network.
type untrusted struct{ what string }

func (u *untrusted) Error() string { return "cannot trust the gate: " + u.what }

func distrust(format string, args ...any) error { return &untrusted{fmt.Sprintf(format, args...)} }

// mostBytes is above any flow's bytes, and sums of it do not overflow.
const mostBytes = 1 << 50

// check rejects what no honest gate sends, whatever the rules allow.
func (b *Broker) check(r wire.Request) error {
	if n := parts(r); n != 1 {
		return distrust("a request with %d parts", n)
	}
	wantsAnswer := r.Lookup != nil || r.Open != nil || r.Flow != nil || r.Enter != nil
	if wantsAnswer != (r.ID != 0) {
		return distrust("a request with the wrong number %d", r.ID)
	}
	switch {
	case r.Lookup != nil:
		return checkLookup(r.Lookup)
	case r.Open != nil:
		return checkOpen(r.Open)
	case r.Flow != nil:
		return checkFlow(r.Flow)
	case r.Enter != nil:
		return b.checkEnter(r.Enter)
	case r.Closed != nil:
		return checkClosed(r.Closed)
	case r.Refused != nil:
		return checkRefused(r.Refused)
	case r.Held != nil:
		return checkHeld(r.Held)
	}
	return nil
}

// canonical is the canonical form of a name that the agent chose. An agent may query any
// text, and an honest gate forwards it. So a text that is not a name is denied, and the
// gate is still trusted.
func canonical(text string) (egress.Name, bool) {
	name, err := egress.ParseName(text)
	return name, err == nil && strings.EqualFold(string(name), strings.TrimSuffix(text, "."))
}

// checkText bounds a name by the longest one in a DNS message, with each byte escaped as
// \DDD (RFC 1035 section 5.1).
func checkText(name string) error {
	const longest = 4 * 255
	if len(name) > longest {
		return distrust("a name of %d bytes", len(name))
	}
	return nil
}

// checkLookup rejects meta types and query types (RFC 6895 section 3.1), which an honest
// gate refuses itself.
func checkLookup(l *wire.Lookup) error {
	const typeOPT = 41
	if l.Type == 0 || l.Type == typeOPT || (l.Type >= 128 && l.Type <= 255) {
		return distrust("a question of type %d", l.Type)
	}
	return checkText(l.Name)
}

// checkTarget accepts the form in which a kernel reports a socket's address: no zone, not
// IPv4-mapped. Port 0 is possible: a program can connect to it.
func checkTarget(target netip.AddrPort) error {
	addr := target.Addr()
	if !addr.IsValid() || addr.Zone() != "" || addr.Is4In6() {
		return distrust("the target %q", target.String())
	}
	return nil
}

// checkOpen requires that Name and Shown agree: a name without a place where it was shown
// could come from nowhere but the gate.
func checkOpen(o *wire.Open) error {
	if err := checkTarget(o.Target); err != nil {
		return err
	}
	switch o.Shown {
	case "", wire.ShownNothing:
		if o.Name != "" {
			return distrust("a name that was shown nowhere")
		}
		return nil
	case wire.ShownTLS, wire.ShownHTTP:
		if o.Name == "" {
			return distrust("no name, shown in %s", o.Shown)
		}
		return checkText(o.Name)
	}
	return distrust("a name shown in %+q", o.Shown)
}

// checkFlow requires one address family: Namespace.Flow cannot join two.
func checkFlow(f *wire.Flow) error {
	if err := checkTarget(f.Target); err != nil {
		return err
	}
	if err := checkTarget(f.Agent); err != nil {
		return err
	}
	if f.Agent.Addr().Is4() != f.Target.Addr().Is4() {
		return distrust("a flow from %s to %s", f.Agent, f.Target)
	}
	return nil
}

// checkEnter rejects ports that the user has not published: only they may be reached from the host.
func (b *Broker) checkEnter(e *wire.Enter) error {
	if !b.published[e.Port] {
		return distrust("an entry to port %d, which is not published", e.Port)
	}
	return checkTarget(e.Client)
}

// checkClosed rejects counts that would corrupt the totals.
func checkClosed(c *wire.Closed) error {
	if c.RxBytes < 0 || c.TxBytes < 0 || c.RxBytes > mostBytes || c.TxBytes > mostBytes {
		return distrust("%d and %d bytes of one connection", c.RxBytes, c.TxBytes)
	}
	return nil
}

// refusals are the details in the record for each of the gate's reasons.
var refusals = map[wire.Reason]string{
	wire.ReasonNoName:      "the rule is by name, and the client showed none",
	wire.ReasonEncrypted:   "the client hid the name that it wants (encrypted hello)",
	wire.ReasonHTTP2:       "HTTP/2 without TLS shows no name that the gate can read",
	wire.ReasonTooLong:     "the head of the request, or the TLS hello, is longer than 16 KiB",
	wire.ReasonMalformed:   "what the client sent first could be read in two ways",
	wire.ReasonTooSlow:     "the client did not show a name in time",
	wire.ReasonConnections: "too many connections at once",
	wire.ReasonRate:        "too many new connections in a second",
	wire.ReasonBytes:       "the bytes of this run are used up",
	wire.ReasonQuery:       "no plain DNS query",
	wire.ReasonProtocol:    "neither TCP nor UDP",
}

// checkHeld requires one address family: a socket has two ends of one.
func checkHeld(h *wire.Held) error {
	return checkFlow(&wire.Flow{Agent: h.Client, Target: h.Target})
}

// mostRefusals is above what a gate can count between two messages.
const mostRefusals = 1 << 30

// checkRefused accepts the known reasons only, and no count that would corrupt the totals.
func checkRefused(r *wire.Refused) error {
	if refusals[r.Reason] == "" {
		return distrust("the reason %+q", r.Reason)
	}
	if r.Count < 1 || r.Count > mostRefusals {
		return distrust("%d refusals at once", r.Count)
	}
	if r.Target != (netip.AddrPort{}) {
		if err := checkTarget(r.Target); err != nil {
			return err
		}
	}
	return checkText(r.Name)
}

// parts counts the pointers that are set. check looks at the first one only, so a second
// would not be checked.
func parts(r wire.Request) int {
	n := 0
	for _, set := range []bool{r.Ready != nil, r.Lookup != nil, r.Open != nil, r.Flow != nil, r.Enter != nil, r.Closed != nil, r.Refused != nil, r.Held != nil} {
		if set {
			n++
		}
	}
	return n
}
