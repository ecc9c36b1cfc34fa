package build

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

// readNetwork refuses every mode and rule that would be enforced less strictly than it reads.
func (b *builder) readNetwork() error {
	for _, step := range []func(*builder) error{
		(*builder).readNetworkMode, (*builder).readRules, (*builder).readHostPorts,
		(*builder).readPublished, (*builder).readDNS, (*builder).readNetworkLimits, (*builder).checkNetwork,
	} {
		if err := step(b); err != nil {
			return err
		}
	}
	return nil
}

// readNetworkMode keeps the level's mode if none is given. Rules without a mode mean an
// allowlist: the user named what is to be reached.
func (b *builder) readNetworkMode() error {
	mode := b.asked.Network
	if mode == "" && len(b.asked.Allow)+len(b.asked.Deny) > 0 {
		mode = agent.NetworkAllowlist
	}
	if mode == "" {
		return nil
	}
	if !slices.Contains(agent.NetworkModes, mode) {
		return invalid("network", "write one of "+strings.Join(agent.NetworkModes, ", "), "%q is not a network mode", mode)
	}
	b.spec.Network = mode
	return nil
}

// readRules leaves the syntax of targets to checkNetwork, which compiles all rules at once.
func (b *builder) readRules() error {
	b.spec.Egress.Rules = append(slices.Clone(b.asked.policyRules), rules(b.asked.Allow, b.asked.Deny)...)
	return nil
}

// ParseRules returns the rules for these targets, in the form that a spec and an update
// have, or the first one's mistake.
func ParseRules(allow, deny []string) ([]agent.EgressRule, error) {
	list := rules(allow, deny)
	_, err := egress.New(egress.Config{Mode: agent.NetworkAllowlist, Rules: list})
	return list, err
}

// rules writes each rule's flag beside it, so that `clove why` and records can name where a
// rule came from.
func rules(allow, deny []string) (list []agent.EgressRule) {
	for _, target := range allow {
		list = append(list, agent.EgressRule{Target: target, Source: "--allow"})
	}
	for _, target := range deny {
		list = append(list, agent.EgressRule{Deny: true, Target: target, Source: "--deny"})
	}
	return list
}

// readHostPorts sorts the ports and drops repeated ones: the list is a set, and the same
// set gives the same spec.
func (b *builder) readHostPorts() error {
	for _, text := range b.asked.HostPorts {
		port, err := ParsePort(text)
		if err != nil {
			return invalid("host-port", "write a number from 1 to 65535: the agent reaches the host's 127.0.0.1 there at its own 127.0.0.1", "%q is not a port", text)
		}
		b.spec.Egress.HostPorts = append(b.spec.Egress.HostPorts, port)
	}
	slices.Sort(b.spec.Egress.HostPorts)
	b.spec.Egress.HostPorts = slices.Compact(b.spec.Egress.HostPorts)
	return nil
}

const publishHint = "write [IP:]HOSTPORT:PORT, for example 8080:80 or 127.0.0.1:8080:80"

// readPublished publishes at loopback unless an address is given, so that publishing never
// opens the agent to the network by accident. docker's default is every address.
func (b *builder) readPublished() error {
	for _, text := range b.asked.Publish {
		published, err := parsePublished(text)
		if err != nil {
			return invalid("publish", publishHint, "cannot publish %q: %v", text, err)
		}
		if slices.Contains(b.spec.Egress.Publish, published) {
			return invalid("publish", "name each one once", "%q is published twice", text)
		}
		b.spec.Egress.Publish = append(b.spec.Egress.Publish, published)
	}
	return nil
}

// parsePublished reads from the right, because an IPv6 address contains colons itself.
func parsePublished(text string) (agent.PublishedPort, error) {
	var none agent.PublishedPort
	rest, inside, found := cutLast(text, ":")
	if !found {
		return none, fmt.Errorf("it names one port")
	}
	port, err := ParsePort(inside)
	if err != nil {
		return none, fmt.Errorf("%q is not a port", inside)
	}
	host, outside, found := cutLast(rest, ":")
	if !found {
		host, outside = "127.0.0.1", rest
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if err != nil || address.Zone() != "" {
		return none, fmt.Errorf("%q is not an address", host)
	}
	// 0 stays 0: the kernel chooses a free port when the run starts.
	hostPort := uint16(0)
	if outside != "0" {
		if hostPort, err = ParsePort(outside); err != nil {
			return none, fmt.Errorf("%q is not a port", outside)
		}
	}
	return agent.PublishedPort{Host: netip.AddrPortFrom(address.Unmap(), hostPort), Port: port}, nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// readDNS takes no names: a name server's name could not be resolved without one. A zone
// would name one of this host's interfaces.
func (b *builder) readDNS() error {
	for _, text := range b.asked.DNS {
		address, err := netip.ParseAddr(text)
		server := netip.AddrPortFrom(address, 53)
		if err != nil {
			server, err = netip.ParseAddrPort(text)
		}
		if err != nil || server.Port() == 0 || server.Addr().Zone() != "" {
			return invalid("dns", "write an address, or ADDRESS:PORT, for example 9.9.9.9 or [2620:fe::fe]:53", "%q is not a name server", text)
		}
		b.spec.Egress.DNS = append(b.spec.Egress.DNS, server)
	}
	return nil
}

// readNetworkLimits keeps the level's value of each limit that is not given.
func (b *builder) readNetworkLimits() (err error) {
	limits := &b.spec.Egress.Limits
	if limits.Connections, err = count("net-connections", b.asked.NetConnections, limits.Connections); err != nil {
		return err
	}
	if limits.PerSecond, err = count("net-rate", b.asked.NetRate, limits.PerSecond); err != nil {
		return err
	}
	if text := b.asked.NetBytes; text != "" {
		limits.Bytes, err = ParseSize("net-bytes", text, 1)
	}
	return err
}

// count reads a number of connections; the empty text is the standard level's.
func count(field, text string, standard int) (int, error) {
	if text == "" {
		return standard, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, invalid(field, "write a whole number from 1 to 65535", "%q is not a number of connections", text)
	}
	return int(n), nil
}

// checkNetwork refuses combinations of which a part would have no effect, and rules that do
// not compile.
func (b *builder) checkNetwork() error {
	e := b.spec.Egress
	switch {
	case b.spec.Network == agent.NetworkHost && len(e.Rules)+len(e.HostPorts)+len(e.Publish)+len(e.DNS) > 0:
		return invalid("network", "use --network public or allowlist with rules; in the host's own network no rule is enforced",
			"%q takes no rules, ports or name servers", b.spec.Network)
	case b.spec.Network == agent.NetworkNone && len(e.Rules) == 0 && len(e.DNS) > 0:
		return invalid("dns", "add --allow NAME, or --network public", "the agent may resolve no name, so a name server has no use")
	case b.spec.Network == agent.NetworkNone && len(e.Rules) > 0:
		return invalid("network", "omit --network, or write --network allowlist", "%q allows nothing, but there are rules", b.spec.Network)
	}
	_, err := Rules(b.spec)
	return err
}

// Rules compiles a spec's rules as a run would.
func Rules(spec agent.Spec) (*egress.Rules, error) {
	return egress.New(egress.Config{Mode: spec.Network, Rules: spec.Egress.Rules, HostPorts: spec.Egress.HostPorts})
}
