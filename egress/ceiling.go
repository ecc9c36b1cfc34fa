package egress

import (
	"strings"

	"clove.run/clove/agent"
)

// Ceiling is the most that the rules of others may allow: each of their targets lies
// within one of these.
type Ceiling []Target

// NewCeiling reads targets as those of allow rules, without a port for the web's alone.
func NewCeiling(targets []string) (Ceiling, error) {
	rules, err := New(Config{Mode: agent.NetworkAllowlist, Rules: allowing(targets), User: true})
	if err != nil {
		return nil, err
	}
	var c Ceiling
	for _, rule := range rules.order {
		c = append(c, rule.Target)
	}
	return c, nil
}

func allowing(targets []string) (rules []agent.EgressRule) {
	for _, target := range targets {
		rules = append(rules, agent.EgressRule{Target: target})
	}
	return rules
}

// Covers says whether an allow rule for the target opens nothing that the ceiling's
// own rules would not. In doubt it does not.
func (c Ceiling) Covers(target string) (bool, error) {
	t, err := ParseTarget(target)
	if err != nil {
		return false, err
	}
	for _, most := range c {
		if t.protoOf() == most.protoOf() && portsWithin(t.ports, most.ports) && t.placeWithin(most) {
			return true, nil
		}
	}
	return false, nil
}

// String is the targets as they are written.
func (c Ceiling) String() string {
	var texts []string
	for _, t := range c {
		texts = append(texts, t.String())
	}
	return strings.Join(texts, " ")
}

// protoOf is the protocol of an allow rule.
func (t Target) protoOf() Proto {
	if t.proto == "" {
		return TCP
	}
	return t.proto
}

// portsWithin compares ports of allow rules, where none means the web's.
func portsWithin(ports, most portRange) bool {
	if ports != (portRange{}) && most != (portRange{}) {
		return most.first <= ports.first && ports.last <= most.last
	}
	if most == (portRange{}) {
		return ports == portRange{} || ports.first == ports.last && (ports.first == webPorts[0] || ports.first == webPorts[1])
	}
	return most.contains(webPorts[0]) && most.contains(webPorts[1])
}

// placeWithin compares what allow rules open: a name never more than public addresses.
func (t Target) placeWithin(most Target) bool {
	switch {
	case t.place() == most.place():
		return true
	case most.word == ClassPublic && t.name != "":
		return true
	case most.wild:
		return t.name != "" && (t.wild && t.name == most.name || strings.HasSuffix(string(t.name), "."+string(most.name)))
	case !t.prefix.IsValid():
		return false
	case most.word != "":
		return wordMeans(most.word, t.opens())
	}
	return most.prefix.IsValid() && most.prefix.Bits() <= t.prefix.Bits() && most.prefix.Contains(t.prefix.Addr()) &&
		(t.opens() == ClassPublic || most.namesClassOf(reach{addr: t.prefix.Addr(), class: t.opens()}))
}

// opens is the class of the addresses that a rule for this address or network opens: a
// network that is no part of a special block opens its public addresses.
func (t Target) opens() Class {
	class := Classify(t.prefix.Addr())
	if t.prefix.IsSingleIP() || t.liesIn(class) {
		return class
	}
	return ClassPublic
}
