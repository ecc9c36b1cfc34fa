package egress

import (
	"slices"
	"strings"

	"clove.run/clove/agent"
)

// Ceiling bounds the rules of others: each of their targets must be within one of these.
type Ceiling []Target

// NewCeiling parses targets like those of allow rules: without a port they mean 80 and 443.
// They are checked as the rules of a user: a target that no user's rule may have is a
// mistake here too.
func NewCeiling(targets []string) (Ceiling, error) {
	return ceilingOf(Config{Mode: agent.NetworkAllowlist, Rules: allowing(targets), User: true})
}

// Reach is what a run with this mode and these rules may reach, without what is denied.
func Reach(mode string, rules []agent.EgressRule) (Ceiling, error) {
	return ceilingOf(Config{Mode: mode, Rules: rules})
}

func ceilingOf(config Config) (Ceiling, error) {
	rules, err := New(config)
	if err != nil {
		return nil, err
	}
	return rules.opened(), nil
}

// opened are the targets of the allow rules, that of a mode too.
func (r *Rules) opened() (c Ceiling) {
	for _, rule := range r.order {
		if !rule.deny {
			c = append(c, rule.Target)
		}
	}
	return c
}

// allowing makes allow rules of the targets.
func allowing(targets []string) (rules []agent.EgressRule) {
	for _, target := range targets {
		rules = append(rules, agent.EgressRule{Target: target})
	}
	return rules
}

// Covers reports whether an allow rule for the target allows nothing that the ceiling's own
// targets would not. It may report false for a target that is covered, never the reverse.
func (c Ceiling) Covers(target string) (bool, error) {
	t, err := ParseTarget(target)
	if err != nil {
		return false, err
	}
	return c.holds(t), nil
}

func (c Ceiling) holds(t Target) bool {
	return slices.ContainsFunc(c, func(most Target) bool {
		return t.protoOf() == most.protoOf() && portsWithin(t.ports, most.ports) && t.placeWithin(most)
	})
}

// String is the targets in canonical form.
func (c Ceiling) String() string {
	var texts []string
	for _, t := range c {
		texts = append(texts, t.String())
	}
	return strings.Join(texts, " ")
}

// protoOf is the protocol that an allow rule for t means.
func (t Target) protoOf() Proto {
	if t.proto == "" {
		return TCP
	}
	return t.proto
}

// portsWithin compares the ports of allow rules, where no port means 80 and 443.
func portsWithin(ports, most portRange) bool {
	if ports != (portRange{}) && most != (portRange{}) {
		return most.first <= ports.first && ports.last <= most.last
	}
	if most == (portRange{}) {
		// The ceiling is 80 and 443.
		return ports == portRange{} || ports.first == ports.last && (ports.first == webPorts[0] || ports.first == webPorts[1])
	}
	// The target is 80 and 443.
	return most.contains(webPorts[0]) && most.contains(webPorts[1])
}

// placeWithin compares the addresses that allow rules open. A name opens public addresses
// only, so `public` covers every name.
func (t Target) placeWithin(most Target) bool {
	switch {
	case t.place() == most.place():
		return true
	case most.group == ClassPublic && t.name != "":
		return true
	case most.any:
		return t.name == most.name && !t.wild
	// *.example.com covers narrower wildcards and all names below it, but not example.com.
	case most.wild:
		return t.name != "" && !t.any && (t.wild && t.name == most.name || strings.HasSuffix(string(t.name), "."+string(most.name)))
	case !t.prefix.IsValid():
		return false
	// A group covers an address or network whose addresses are all of its class.
	case most.group != "":
		return groupCovers(most.group, t.opens())
	}
	return most.prefix.IsValid() && most.prefix.Bits() <= t.prefix.Bits() && most.prefix.Contains(t.prefix.Addr()) &&
		(t.opens() == ClassPublic || most.namesClassOf(reach{addr: t.prefix.Addr(), class: t.opens()}))
}

// opens is the class of the addresses that an allow rule for this address or network opens.
// A network that is not within one special block opens its public addresses only.
func (t Target) opens() Class {
	class := Classify(t.prefix.Addr())
	if t.prefix.IsSingleIP() || t.liesIn(class) {
		return class
	}
	return ClassPublic
}
