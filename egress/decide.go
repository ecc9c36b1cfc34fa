package egress

import (
	"fmt"
	"net/netip"
	"slices"

	"clove.run/clove/agent"
)

// Connection is a connection that the agent requests, with what is known about it.
type Connection struct {
	Proto  Proto
	Target netip.AddrPort
	Pinned []Name // names that were resolved for the agent to Target's address
	Shown  Name   // the name in the connection's first bytes; "": none
	Looked bool   // whether the first bytes were read
}

// Resolve decides whether a name may be resolved at all; the port is not known yet. A name
// that only a group or an address rule could allow is resolved under `public` only,
// because each query is itself a message to the outside.
func (r *Rules) Resolve(name Name) Verdict {
	if r.mode == agent.NetworkHost {
		return Verdict{Allowed: true, Reason: ReasonHostMode}
	}
	if name.IsLocalhost() {
		return refused(string(ClassLoopback), fmt.Sprintf("%s is never looked up: it is the agent itself", name), "--host-port PORT")
	}
	// Deny first, and before the query leaves: a query for a denied name would already be a
	// message to its owner.
	if rule := r.deny.byName(name, anyPort); rule != nil {
		return deniedBy(rule, string(name))
	}
	if rule := r.allow.byName(name, anyPort); rule != nil {
		return allowedBy(rule, name)
	}
	if addr, reverse := name.Reverse(); reverse {
		return r.reverse(name, addr)
	}
	// `public` on any port allows resolving: without it the rule would be useless.
	for _, rule := range r.allow.groups {
		if rule.group == ClassPublic {
			return allowedBy(rule, "")
		}
	}
	return r.unmentioned(fmt.Sprintf("%s is not allowed", name), allowFlag(TCP, string(name), 0))
}

// reverse allows a reverse look-up of an allowed address. An invalid addr means a name of
// the reverse tree that is not a full address.
func (r *Rules) reverse(name Name, addr netip.Addr) Verdict {
	if addr.IsValid() {
		at := r.reach(addr)
		if rule := r.deny.byAddress(at, anyPort); rule != nil {
			return deniedBy(rule, at.place())
		}
		if rule := r.allows(at, anyPort); rule != nil {
			return allowedBy(rule, "")
		}
	}
	return r.unmentioned(fmt.Sprintf("%s is not allowed", name), allowFlag(TCP, string(name), 0))
}

// Answer decides whether an address may be given as an answer for a name; the port is not
// known yet. A name rule alone never opens an address that is not public: otherwise the
// name's owner could point it at the internal network (DNS rebinding).
func (r *Rules) Answer(name Name, addr netip.Addr) Verdict {
	verdict := r.Resolve(name)
	if !verdict.Allowed || r.mode == agent.NetworkHost {
		return verdict
	}
	at := r.reach(addr)
	// A deny rule for some ports cannot decide yet; Connect applies it.
	if rule := r.deny.byAddress(at, anyPort); rule != nil {
		return deniedBy(rule, fmt.Sprintf("%s, the answer for %s,", at.place(), name))
	}
	if at.class == ClassPublic {
		return verdict
	}
	if rule := r.allows(at, anyPort); rule != nil {
		return allowedBy(rule, name)
	}
	return refused(ReasonRebinding, fmt.Sprintf("%s answers with %s: %s", name, at.place(), classDetails[at.class]), r.classHint(at, TCP, 0))
}

// Connect decides on one connection or UDP flow. Without Looked it may return a condition
// (Verdict.Verify); the caller then reads the first bytes and asks again with Looked and
// Shown.
func (r *Rules) Connect(c Connection) Verdict {
	if r.mode == agent.NetworkHost {
		return Verdict{Allowed: true, Reason: ReasonHostMode}
	}
	if !c.Target.IsValid() || c.Target.Addr().Zone() != "" || c.Target.Port() == 0 || (c.Proto != TCP && c.Proto != UDP) {
		return refused(ReasonInvalid, fmt.Sprintf("%q %s is nothing to connect to", c.Proto, c.Target), "")
	}
	return r.connect(c, r.reach(c.Target.Addr()))
}

// ConnectName decides whether the addresses of a name may be connected to on a port, before it is resolved. What is
// allowed must pass Answer and Connect with each address.
func (r *Rules) ConnectName(proto Proto, name Name, port uint16) Verdict {
	verdict := r.Resolve(name)
	if !verdict.Allowed || r.mode == agent.NetworkHost {
		return verdict
	}
	fits := covering(proto, port)
	if rule := r.deny.byName(name, fits); rule != nil {
		return deniedBy(rule, string(name))
	}
	if rule := r.allow.byName(name, fits); rule != nil {
		return allowedBy(rule, name)
	}
	if rule := first(r.allow.groups, func(rule *rule) bool { return rule.group == ClassPublic && fits(rule) }); rule != nil {
		return allowedBy(rule, "")
	}
	return refused(ReasonPort, fmt.Sprintf("%s is not allowed on %s port %d", name, proto, port), allowFlag(proto, string(name), port))
}

// connect asks in this order:
//
//	deny rules by address      whatever led there
//	loopback                   --host-port, and nothing after it
//	deny rules by name         where no client will show its name
//	allow rules by address     what they allow needs no name
//	allow rules by name        public addresses only
func (r *Rules) connect(c Connection, at reach) Verdict {
	fits := covering(c.Proto, c.Target.Port())
	if rule := r.deny.byAddress(at, fits); rule != nil {
		return deniedBy(rule, at.place())
	}
	if at.class == ClassLoopback {
		return r.hostPort(c, at)
	}
	if !isWeb(c.Proto, c.Target.Port()) {
		// The client shows no name on this port, so a denied name among the candidates decides.
		for _, name := range c.Pinned {
			if rule := r.deny.byName(name, fits); rule != nil {
				return deniedBy(rule, string(name))
			}
		}
	}
	if rule := r.allows(at, fits); rule != nil {
		return r.allowedByAddress(c, rule)
	}
	if at.class == ClassPublic {
		return r.connectByName(c, at)
	}
	return r.notAllowed(c, at)
}

// hostPort decides on 127.0.0.1, which the gate requests only for the listeners of
// --host-port. Every other loopback address is refused.
func (r *Rules) hostPort(c Connection, at reach) Verdict {
	if at.addr == hostLoopback {
		if rule := first(r.hostPorts, covering(c.Proto, c.Target.Port())); rule != nil {
			return allowedBy(rule, "")
		}
	}
	return r.notAllowed(c, at)
}

// allowedByAddress checks a connection that an address rule allows: the client must not ask
// for a denied name.
func (r *Rules) allowedByAddress(c Connection, rule *rule) Verdict {
	verdict := allowedBy(rule, "")
	fits := covering(c.Proto, c.Target.Port())
	// Where no name is denied, or none can be shown, there is nothing to look for, and the
	// client need not wait until its first bytes were read.
	if !isWeb(c.Proto, c.Target.Port()) || !r.webDenies[c.Target.Port()] {
		return verdict
	}
	if !c.Looked {
		return verdict.afterVerify(VerifyDeny)
	}
	if c.Shown != "" {
		if deny := r.deny.byName(c.Shown, fits); deny != nil {
			return deniedBy(deny, string(c.Shown))
		}
		if slices.Contains(c.Pinned, c.Shown) {
			return verdict
		}
	}
	// The client shows no name, or one that did not lead here. If a denied name
	// did, assume that one.
	for _, name := range c.Pinned {
		if deny := r.deny.byName(name, fits); deny != nil {
			return deniedBy(deny, string(name))
		}
	}
	return verdict
}

// connectByName looks for an allowed name that was resolved to this public address: first for one
// whose client need not show it.
func (r *Rules) connectByName(c Connection, at reach) Verdict {
	fits := covering(c.Proto, c.Target.Port())
	for _, pinned := range c.Pinned {
		if rule := first(r.allow.names[pinned], func(r *rule) bool { return r.any && fits(r) }); rule != nil {
			verdict := r.allowedByAddress(c, rule)
			verdict.Name = pinned
			return verdict
		}
	}
	var name Name
	var allow, deny *rule
	// Any allowed name suffices, because the client must still show one. A denied name is
	// only remembered for the message.
	for _, pinned := range c.Pinned {
		if rule := r.deny.byName(pinned, fits); rule != nil {
			deny, name = rule, pinned
			continue
		}
		if allow = r.allow.byName(pinned, fits); allow != nil {
			name = pinned
			break
		}
	}
	switch {
	case allow == nil && deny != nil:
		return deniedBy(deny, string(name))
	case allow == nil:
		return r.notAllowed(c, at)
	case !isWeb(c.Proto, c.Target.Port()):
		return allowedBy(allow, name)
	case !c.Looked:
		return allowedBy(allow, name).afterVerify(VerifyMust)
	}
	return r.shown(c, at, name)
}

// shown decides by the name that the client showed; wanted is an allowed name that led to
// this address. An allowed name that did not lead here is refused too: otherwise, after one
// look-up, a client could reach every address by showing that name.
func (r *Rules) shown(c Connection, at reach, wanted Name) Verdict {
	fits := covering(c.Proto, c.Target.Port())
	hint := allowFlag(c.Proto, string(c.Shown), c.Target.Port())
	if c.Shown == "" {
		return refused(ReasonNoName, fmt.Sprintf("%s is allowed by name, and the client showed none", wanted), anyFlag(c.Proto, wanted, c.Target.Port()))
	}
	if deny := r.deny.byName(c.Shown, fits); deny != nil {
		return deniedBy(deny, string(c.Shown))
	}
	allow := r.allow.byName(c.Shown, fits)
	if allow == nil {
		return refused(ReasonMismatch, fmt.Sprintf("%s is not allowed, and was shown at an address of %s", c.Shown, wanted), hint)
	}
	if !slices.Contains(c.Pinned, c.Shown) {
		return refused(ReasonMismatch, fmt.Sprintf("%s did not lead to this address, %s did", c.Shown, wanted), "")
	}
	return allowedBy(allow, c.Shown)
}

// notAllowed says what is missing, and the narrowest flag that would allow it. It prefers a
// name to an address in the flag, because addresses change.
func (r *Rules) notAllowed(c Connection, at reach) Verdict {
	port := c.Target.Port()
	if at.class != ClassPublic {
		verdict := refused(string(at.class), fmt.Sprintf("%s: %s", at.place(), classDetails[at.class]), r.classHint(at, c.Proto, port))
		if at.class != ClassLoopback && r.allows(at, anyPort) != nil {
			verdict.Reason = ReasonPort
			verdict.Detail = fmt.Sprintf("%s is not allowed on %s port %d", at.place(), c.Proto, port)
		}
		return verdict
	}
	for _, name := range c.Pinned {
		if r.allow.byName(name, anyPort) != nil {
			return refused(ReasonPort, fmt.Sprintf("%s is not allowed on %s port %d", name, c.Proto, port), allowFlag(c.Proto, string(name), port))
		}
	}
	hint := allowFlag(c.Proto, at.place(), port)
	if len(c.Pinned) > 0 {
		hint = allowFlag(c.Proto, string(c.Pinned[0]), port)
	}
	if r.allows(at, anyPort) != nil {
		return refused(ReasonPort, fmt.Sprintf("%s is not allowed on %s port %d", at.place(), c.Proto, port), hint)
	}
	return r.unmentioned(fmt.Sprintf("%s is not allowed, and no allowed name led there", at.place()), hint)
}

// unmentioned is the verdict when no rule mentions the target.
func (r *Rules) unmentioned(detail, hint string) Verdict {
	if r.mode == agent.NetworkNone {
		return refused(ReasonNoneMode, "this agent has no network", hint)
	}
	return refused(ReasonNoRule, detail, hint)
}
