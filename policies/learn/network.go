package learn

import (
	"net/netip"
	"slices"
	"strconv"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// network narrows it to the targets that were allowed. refused are the others, for comments.
func (o Observation) network(d *policies.Document, why map[string]string) (refused []string) {
	if o.Given.Text(settings.NetworkMode) == agent.NetworkHost {
		drop(d, settings.Network(), settings.NetworkMode, settings.HostPort)
		why["network.mode"] = "the host's own network, of which nothing was observed"
		return nil
	}
	allow, ports := []string(nil), []uint16(nil)
	for _, t := range o.Targets {
		switch {
		case t.Kind == kindHostPort && t.Allowed:
			ports = append(ports, t.Port)
		case !t.Allowed && t.Refused && !o.reached(t.Name):
			refused = append(refused, written(t))
		case !t.Allowed || t.Kind == kindDNS && o.reached(t.Name):
		case !slices.Contains(allow, written(t)):
			allow = append(allow, written(t))
			if t.Kind == kindDNS {
				why["network.allow."+written(t)] = "its addresses were looked up, and nothing was connected"
			}
		}
	}
	slices.Sort(ports)
	d.SetList(settings.HostPort, settings.PortTexts(slices.Compact(ports)))
	d.SetList(settings.Allow, allow)
	// Written also where the extended document has the same.
	for _, key := range []string{"network.allow", "network.deny", "network.dns", "network.host_ports"} {
		why[key] = ""
	}
	if len(allow) > 0 {
		d.Set(settings.NetworkMode, agent.NetworkAllowlist)
		why["network.mode"] = ""
		return refused
	}
	drop(d, settings.Network(), settings.HostPort)
	d.Set(settings.NetworkMode, agent.NetworkNone)
	why["network.mode"] = "nothing was reached"
	if len(ports) > 0 {
		why["network.mode"] = "nothing was reached but ports of the host's loopback"
	}
	return refused
}

// drop removes the settings of a section, but for some.
func drop(d *policies.Document, section *settings.Section, but ...string) {
	for _, row := range section.Rows {
		if !slices.Contains(but, row.Name()) {
			delete(d.Values, row.Name())
		}
	}
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
