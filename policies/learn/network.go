package learn

import (
	"net/netip"
	"slices"
	"strconv"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// network narrows it to the targets that were allowed. refused are the others, for comments.
func (o Observation) network(d *policies.Document, why map[string]string) (refused []string) {
	if o.Given.Network.Mode == agent.NetworkHost {
		why["network.mode"] = "the host's own network, of which nothing was observed"
		return nil
	}
	d.Network.Allow, d.Network.HostPorts, d.Network.Deny = nil, nil, nil
	for _, t := range o.Targets {
		switch {
		case t.Kind == kindHostPort && t.Allowed:
			d.Network.HostPorts = append(d.Network.HostPorts, t.Port)
		case !t.Allowed && t.Refused && !o.reached(t.Name):
			refused = append(refused, written(t))
		case !t.Allowed || t.Kind == kindDNS && o.reached(t.Name):
		case !slices.Contains(d.Network.Allow, written(t)):
			d.Network.Allow = append(d.Network.Allow, written(t))
			if t.Kind == kindDNS {
				why["network.allow."+written(t)] = "its addresses were looked up, and nothing was connected"
			}
		}
	}
	slices.Sort(d.Network.HostPorts)
	d.Network.HostPorts = slices.Compact(d.Network.HostPorts)
	if len(d.Network.Allow) == 0 {
		d.Network = policies.Network{Mode: agent.NetworkNone, HostPorts: d.Network.HostPorts}
		why["network.mode"] = "nothing was reached"
		if len(d.Network.HostPorts) > 0 {
			why["network.mode"] = "nothing was reached but ports of the host's loopback"
		}
		return refused
	}
	d.Network.Mode, d.Network.Deny = agent.NetworkAllowlist, o.Given.Network.Deny
	return refused
}

// reached reports whether a connection was allowed by this name.
func (o Observation) reached(name string) bool {
	return name != "" && slices.ContainsFunc(o.Targets, func(t agent.ObservedTarget) bool { return t.Name == name && t.Kind != kindDNS && t.Allowed })
}

// httpsPort stands in the rule of a name of which no port was used.
const httpsPort = 443

// written is the narrowest rule that allows a target.
func written(t agent.ObservedTarget) string {
	text := t.Name
	if text == "" {
		text = t.Address
		if addr, err := netip.ParseAddr(t.Address); err == nil && addr.Is6() {
			text = "[" + t.Address + "]"
		}
	}
	port := t.Port
	if port == 0 {
		port = httpsPort
	}
	text += ":" + strconv.Itoa(int(port))
	if t.Kind == kindUDP {
		return "udp://" + text
	}
	return text
}
