package egress

import (
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// More is what the rules of one run open, and those of another do not.
type More struct {
	Targets []string // of allow rules, the mode's too: no rule of the other opens all of them
	Denials []string // of the other: they do not hold, and an allow rule opens a part of what they deny
}

// MoreThan compares two runs by what their rules let through, not by how they are written: a
// denial may be missing where nothing that it denies is opened. HostPorts are not compared. An
// address that base.IsHost reports is opened by rules that name it, and by no group or network.
// More may be too much, never too little: without any, each connection that wide makes with
// the names that it can look up is one that base may make.
func MoreThan(base, wide Config) (m More, err error) {
	if base.Mode == agent.NetworkHost {
		return More{}, nil
	}
	base.HostPorts, wide.HostPorts = nil, nil
	b, err := New(base)
	if err != nil {
		return More{}, err
	}
	w, err := New(wide)
	if err != nil {
		return More{}, err
	}
	if wide.Mode == agent.NetworkHost {
		return More{Targets: []string{"the host's own network"}}, nil
	}
	most, opened := b.opened(), w.opened()
	for _, t := range opened {
		if !most.holds(t) || b.ofHost(t) && !slices.ContainsFunc(most, func(m Target) bool { return m.place() == t.place() }) {
			m.Targets = append(m.Targets, t.String())
		}
	}
	for _, denial := range b.order {
		holds := func(r *rule) bool { return r.deny && r.denies(denial.Target) }
		if denial.deny && !slices.ContainsFunc(w.order, holds) && slices.ContainsFunc(opened, denial.meets) {
			m.Denials = append(m.Denials, denial.text)
		}
	}
	return m, nil
}

// ofHost reports whether a rule for t opens an address of this host's.
func (r *Rules) ofHost(t Target) bool {
	return t.prefix.IsValid() && t.prefix.IsSingleIP() && r.reach(t.prefix.Addr()).class == ClassHost
}

// denies reports whether a deny rule for t denies all that one for the other target does.
func (t Target) denies(other Target) bool {
	if t.proto != "" && t.proto != other.proto {
		return false
	}
	if ports := other.denied(); ports.first < t.denied().first || ports.last > t.denied().last {
		return false
	}
	switch {
	case t.place() == other.place():
		return true
	case t.wild:
		return strings.HasSuffix(string(other.name), "."+string(t.name))
	case t.prefix.IsValid() && other.prefix.IsValid():
		return t.prefix.Bits() <= other.prefix.Bits() && t.prefix.Contains(other.prefix.Addr())
	}
	return false
}

// denied are the ports of a deny rule, where no port means all.
func (t Target) denied() portRange {
	if t.ports == (portRange{}) {
		return everyPort
	}
	return t.ports
}

// meets reports whether a deny rule for t may deny a part of what an allow rule opens.
func (t Target) meets(opened Target) bool {
	if t.proto != "" && t.proto != opened.protoOf() {
		return false
	}
	denied, ports := t.denied(), opened.ports
	if ports == (portRange{}) && !denied.contains(webPorts[0]) && !denied.contains(webPorts[1]) ||
		ports != (portRange{}) && (ports.last < denied.first || denied.last < ports.first) {
		return false
	}
	switch {
	case opened.name != "":
		return t.meetsName(opened)
	case t.name != "":
		return true // a name that leads to the address, or that the client shows there
	case opened.group == ClassHost || t.group == ClassHost:
		return true // an address of the host has a class by its bits, too
	case opened.group != "" && t.group != "":
		return opened.group == t.group
	case opened.group != "":
		return t.mixed() || groupCovers(opened.group, t.opens())
	case t.group != "":
		return groupCovers(t.group, opened.opens())
	}
	// An IPv6 address may carry an IPv4 address, whose class it has, and to which the denial applies.
	carries := t.prefix.Addr().Is4() && opened.prefix.Addr().Is6() && (t.mixed() || t.opens() == opened.opens())
	return carries || t.prefix.Overlaps(opened.prefix)
}

// meetsName is meets for a rule by name, which opens public addresses only. Behind a rule for
// @NAME the client may show any name.
func (t Target) meetsName(opened Target) bool {
	below := func(name, above Name) bool { return strings.HasSuffix(string(name), "."+string(above)) }
	switch {
	case t.group != "":
		return t.group == ClassPublic
	case t.name == "":
		return t.mixed() || t.opens() == ClassPublic
	case opened.any:
		return true
	case t.wild && opened.wild:
		return t.name == opened.name || below(t.name, opened.name) || below(opened.name, t.name)
	case t.wild:
		return below(opened.name, t.name)
	case opened.wild:
		return below(t.name, opened.name)
	}
	return t.name == opened.name
}

// mixed reports whether a network has addresses of several classes.
func (t Target) mixed() bool { return !t.liesIn(Classify(t.prefix.Addr())) }
