package settings

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

const publishHint = "write [IP:]HOSTPORT:PORT, for example 8080:80 or 127.0.0.1:8080:80"

// readPublished publishes at loopback unless an address is given, so that publishing never
// opens the agent to the network by accident. docker's default is every address.
func readPublished(r *Reader, text string) error {
	published, err := parsePublished(text)
	if err != nil {
		return Invalid(Publish, publishHint, "cannot publish %q: %v", text, err)
	}
	if slices.Contains(r.Spec.Egress.Publish, published) {
		return Invalid(Publish, "name each one once", "%q is published twice", text)
	}
	r.Spec.Egress.Publish = append(r.Spec.Egress.Publish, published)
	return nil
}

// parsePublished reads from the right, because an IPv6 address contains colons itself.
func parsePublished(text string) (agent.PublishedPort, error) {
	var none agent.PublishedPort
	text, protocol, named := strings.Cut(text, "/")
	if named && protocol != "tcp" {
		return none, fmt.Errorf("only tcp is published, not %q", protocol)
	}
	rest, inside, found := cutLast(text, ":")
	if !found {
		return none, fmt.Errorf("it names one port")
	}
	port, err := ParsePort(inside)
	if err != nil {
		return none, notPort(inside)
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
			return none, notPort(outside)
		}
	}
	return agent.PublishedPort{Host: netip.AddrPortFrom(address.Unmap(), hostPort), Port: port}, nil
}

func notPort(text string) error {
	if first, last, isRange := strings.Cut(text, "-"); isRange && first != "" && last != "" {
		return fmt.Errorf("%q is a range, and each -p names one port", text)
	}
	return fmt.Errorf("%q is not a port", text)
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
func readDNS(r *Reader, text string) error {
	address, err := netip.ParseAddr(text)
	server := netip.AddrPortFrom(address, 53)
	if err != nil {
		server, err = netip.ParseAddrPort(text)
	}
	if err != nil || server.Port() == 0 || server.Addr().Zone() != "" {
		return Invalid(DNS, "write an address, or ADDRESS:PORT, for example 9.9.9.9 or [2620:fe::fe]:53", "%q is not a name server", text)
	}
	r.Spec.Egress.DNS = append(r.Spec.Egress.DNS, server)
	return nil
}

// readHost reads NAME:ADDRESS and NAME=ADDRESS; an IPv6 address may stand in brackets.
func readHost(r *Reader, text string) error {
	const hint = "write NAME:ADDRESS, for example db.example:10.0.0.5"
	// The first separator: an IPv6 address contains colons itself.
	cut := strings.IndexAny(text, ":=")
	if cut < 0 {
		return Invalid(AddHost, hint, "%q has no address", text)
	}
	name, shown := text[:cut], text[cut+1:]
	// docker's name for the host's address on its bridge.
	if shown == "host-gateway" {
		return Invalid(AddHost, "let the agent reach a port of the host's 127.0.0.1 with --host-port", "the host has no address inside the sandbox")
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(shown, "["), "]"))
	if err != nil || address.Zone() != "" {
		return Invalid(AddHost, hint, "%q is not an address", shown)
	}
	if !agent.IsHostname(name) {
		return Invalid(AddHost, hint, "%q is not a host name", name)
	}
	r.Spec.Hosts = append(r.Spec.Hosts, agent.HostName{Name: name, Address: address})
	return nil
}
