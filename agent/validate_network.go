package agent

import (
	"fmt"
	"slices"
	"strings"
)

// checkNetwork does not parse targets: package egress does, at each edge.
func checkNetwork(s Spec) error {
	e := s.Egress
	if !slices.Contains(NetworkModes, s.Network) {
		return wrong("network", "write one of "+strings.Join(NetworkModes, ", "), "%.64q is not a network mode", s.Network)
	}
	if len(e.HostPorts)+len(e.Publish)+len(e.DNS) > entriesMost {
		return wrong("egress", fmt.Sprintf("use at most %d ports and name servers", entriesMost), "there are too many")
	}
	if err := ValidateRules(e.Rules); err != nil {
		return err
	}
	if slices.Contains(e.HostPorts, 0) {
		return wrong("egress.host_ports", "write a number from 1 to 65535", "0 is not a port")
	}
	for _, p := range e.Publish {
		if p.Port == 0 || !p.Host.Addr().IsValid() || p.Host.Addr().Zone() != "" {
			return wrong("egress.publish", "give an address, a port of the host and one of the agent", "%v to %d cannot be published", p.Host, p.Port)
		}
	}
	for _, server := range e.DNS {
		if !server.IsValid() || server.Port() == 0 || server.Addr().Zone() != "" {
			return wrong("egress.dns", "give an address and a port", "%v is not a name server", server)
		}
	}
	return s.checkGateLimits()
}

// checkGateLimits: a run without a gate may leave the limits at 0, but values out of range
// are rejected there too.
func (s Spec) checkGateLimits() error {
	l, least := s.Egress.Limits, 0
	if s.Gated() {
		least = 1
	}
	switch {
	case l.Connections < least || l.Connections > ConnectionsCeiling:
		return wrong("egress.limits.connections", fmt.Sprintf("give a number from 1 to %d", ConnectionsCeiling), "%d is not a number of connections", l.Connections)
	case l.PerSecond < least || l.PerSecond > PerSecondCeiling:
		return wrong("egress.limits.per_second", fmt.Sprintf("give a number from 1 to %d", PerSecondCeiling), "%d is not a rate", l.PerSecond)
	case l.Bytes < 0 || l.Bytes > SizeCeiling:
		return wrong("egress.limits.bytes", "omit it for no limit", "%d is not a number of bytes", l.Bytes)
	}
	return nil
}
