package egress

import (
	"net/netip"
	"strings"
)

// hostLoopback is the only target that means a port of --host-port.
var hostLoopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// reach is an address with everything that rules check of it.
type reach struct {
	addr  netip.Addr // unmapped; the zero Addr means any public address, in Why
	inner netip.Addr // the IPv4 address that it carries, if any
	bits  Class      // the result of Classify
	class Class      // the same, or ClassHost
}

// reach collects once what every rule would otherwise compute again.
func (r *Rules) reach(addr netip.Addr) reach {
	addr = addr.Unmap()
	at := reach{addr: addr, bits: Classify(addr)}
	if addr.Is6() && addr.Zone() == "" {
		at.inner, _, _ = carried(addr)
	}
	at.class = at.bits
	// Every host owns loopback and may own 169.254.169.254 (a metadata proxy).
	// The group `host` must not open these, so they keep their own class.
	if at.bits != ClassLoopback && at.bits != ClassMetadata && (r.isHost(addr) || (at.inner.IsValid() && r.isHost(at.inner))) {
		at.class = ClassHost
	}
	return at
}

// place is the address in the syntax of a target.
func (at reach) place() string {
	if !at.addr.IsValid() {
		return "a public address"
	}
	if at.addr.Is6() {
		return "[" + at.addr.String() + "]"
	}
	return at.addr.String()
}

// covers reports whether the rule applies to this protocol and port. Without a protocol or
// port, a deny rule covers all of them, an allow rule TCP on 80 and 443: a short rule errs
// on the safe side in both cases.
func (r *rule) covers(proto Proto, port uint16) bool {
	if r.proto != proto && (r.proto != "" || (!r.deny && proto != TCP)) {
		return false
	}
	if r.ports == (portRange{}) {
		return r.deny || port == webPorts[0] || port == webPorts[1]
	}
	return r.ports.contains(port)
}

// covering is covers as a filter for one connection.
func covering(proto Proto, port uint16) func(*rule) bool {
	return func(r *rule) bool { return r.covers(proto, port) }
}

// anyPort is the filter for questions before the port is known. A deny rule for some ports
// only must not match them.
func anyPort(r *rule) bool {
	return !r.deny || (r.proto == "" && (r.ports == portRange{} || r.ports == everyPort))
}

// byName returns the first rule for name that passes fits.
func (s *ruleSet) byName(name Name, fits func(*rule) bool) *rule {
	if found := first(s.names[name], fits); found != nil {
		return found
	}
	if len(s.wild) == 0 {
		return nil
	}
	// One label less in each round, so a wildcard matches names of any depth below it, and
	// the most specific one wins.
	for rest := string(name); ; {
		_, after, found := strings.Cut(rest, ".")
		if !found {
			return nil
		}
		if r := first(s.wild[Name(after)], fits); r != nil {
			return r
		}
		rest = after
	}
}

// first preserves the order in which the rules were given.
func first(rules []*rule, fits func(*rule) bool) *rule {
	for _, r := range rules {
		if fits(r) {
			return r
		}
	}
	return nil
}

// hasName reports whether any rule by name passes fits.
func (s *ruleSet) hasName(fits func(*rule) bool) bool {
	for _, byName := range []map[Name][]*rule{s.names, s.wild} {
		for _, rules := range byName {
			if first(rules, fits) != nil {
				return true
			}
		}
	}
	return false
}

// byAddress returns the first rule for the address that passes fits.
func (s *ruleSet) byAddress(at reach, fits func(*rule) bool) *rule {
	for _, rules := range [][]*rule{s.groups, s.prefixes} {
		for _, r := range rules {
			if fits(r) && r.reaches(at) {
				return r
			}
		}
	}
	return nil
}

// reaches reports whether the rule applies to the address. A deny rule applies to every
// address that reaches its target, an allow rule only to what it names.
func (r *rule) reaches(at reach) bool {
	switch {
	// An address of this host is private or public by its bits too, and loopback is this
	// host: a deny rule by any of these groups applies.
	case r.group != "" && r.deny:
		return groupCovers(r.group, at.class) || groupCovers(r.group, at.bits) || (r.group == ClassHost && at.class == ClassLoopback)
	case r.group != "":
		return groupCovers(r.group, at.class)
	case r.deny:
		return r.prefix.Contains(at.addr) || r.prefix.Contains(at.inner)
	}
	return r.prefix.Contains(at.addr) && r.namesClassOf(at)
}

// groupCovers: `private` includes the shared address space of RFC 6598 (CGNAT).
func groupCovers(group, class Class) bool {
	return group == class || (group == ClassPrivate && class == ClassCGNAT)
}

// namesClassOf reports whether a network that contains a special address is meant to allow
// it. 0.0.0.0/0 does not open 10.1.2.3, and 10.0.0.0/8 does not open this host's own
// 10.0.0.5.
func (t Target) namesClassOf(at reach) bool {
	switch at.class {
	case ClassPublic:
		return true
	case ClassLoopback:
		return false // only --host-port opens loopback
	}
	return t.prefix.IsSingleIP() || blockOf(at.addr).holds(t.prefix, at.class)
}

// liesIn reports whether the whole network is of this class.
func (t Target) liesIn(class Class) bool {
	if t.prefix.IsSingleIP() {
		return Classify(t.prefix.Addr()) == class
	}
	return blockOf(t.prefix.Addr()).holds(t.prefix, class)
}
