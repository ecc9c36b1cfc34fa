package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
)

// ParseTarget reads one target:
//
//	[tcp://|udp://] PLACE [:PORT | :FIRST-LAST | :*]
//	PLACE: NAME | *.NAME | @NAME | ADDRESS | NETWORK/BITS | [IPV6] | [IPV6]/BITS | public | private | metadata | host
//
// Without a port, an allowed target means 80 and 443 and a denied one every
// port; without a protocol, an allowed one means TCP and a denied one both. So a
// Target has a full meaning only in an agent.EgressRule. Whatever has two readings is refused.
func ParseTarget(text string) (Target, error) {
	t, err := parseTarget(text)
	if err != nil {
		return Target{}, &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("cannot use %s as a target: %s", quote(text), err), Hint: err.hint}
	}
	return t, nil
}

// parseTarget splits a text into protocol, place and ports. A bracket or a second colon means IPv6.
func parseTarget(text string) (Target, *refusal) {
	var t Target
	rest := text
	if scheme, after, found := strings.Cut(text, "://"); found {
		switch proto := Proto(strings.ToLower(scheme)); proto {
		case TCP, UDP:
			t.proto, rest = proto, after
		default:
			return t, notAURL(scheme, after)
		}
	}
	if strings.Contains(rest, "://") {
		return t, hinted(refuse("it has two protocols"), "keep one of them")
	}
	if strings.TrimSpace(rest) == "" {
		return t, refuse("it names no host")
	}
	if rest[0] == '[' {
		return t.bracketed(rest)
	}
	if strings.Count(rest, ":") > 1 {
		return t.bareIPv6(rest)
	}
	place, ports, found := strings.Cut(rest, ":")
	if err := t.setPlace(place, ports); err != nil {
		return t, err
	}
	if !found {
		return t, nil
	}
	return t.withPorts(ports)
}

// setPlace parses everything except IPv6. ports is used for hints only. The order decides
// what a text means: a group, an address, a network, a wildcard, and only then a name.
func (t *Target) setPlace(place, ports string) *refusal {
	lower := strings.ToLower(place)
	if slices.Contains(groups, Class(lower)) {
		t.group = Class(lower)
		return nil
	}
	if addr, err := netip.ParseAddr(place); err == nil {
		t.prefix = netip.PrefixFrom(addr, addr.BitLen())
		return nil
	}
	if before, after, found := strings.Cut(place, "/"); found {
		if _, err := netip.ParseAddr(before); err == nil {
			return t.setNetwork(before, after)
		}
		return withHint(refuse("it has a path"), before, ports)
	}
	if name, found := strings.CutPrefix(place, anyMark); found && isPlainName(name) {
		t.any, place = true, name
	}
	if _, host, found := strings.Cut(place, "@"); found {
		return withHint(refuse("it has a user name"), host, ports)
	}
	if strings.HasPrefix(place, "*") {
		return t.setWildcard(place)
	}
	name, err := canonicalName(place)
	if err != nil {
		return err
	}
	// `public.` would be printed as the group, and mean that when parsed again.
	if slices.Contains(groups, Class(name)) {
		return hinted(refuse("%s is the name of a group", name), "write "+string(name))
	}
	t.name = name
	return nil
}

// setWildcard requires two labels after the dot: *.com is most of the internet, and more
// likely a mistake. It has no list of public suffixes, so *.co.uk is accepted.
func (t *Target) setWildcard(place string) *refusal {
	suffix, found := strings.CutPrefix(place, "*.")
	if !found {
		if place == "*" {
			return hinted(refuse("a lone * is no target"), "write public for every public address and name")
		}
		return hinted(refuse("* stands for whole labels, at the beginning, before a dot"), "write *.example.com")
	}
	if strings.Contains(suffix, "*") {
		return hinted(refuse("it has more than one *"), "*.example.com covers names of any depth")
	}
	name, err := canonicalName(suffix)
	if err != nil {
		return err
	}
	if !strings.Contains(string(name), ".") {
		return hinted(refuse("a wildcard needs at least two labels behind it"), fmt.Sprintf("write *.example.%s", name))
	}
	t.name, t.wild = name, true
	return nil
}

// setNetwork requires that the host bits are zero: 10.1.2.3/8 would allow more than a
// reader of the rule expects.
func (t *Target) setNetwork(address, length string) *refusal {
	prefix, err := netip.ParsePrefix(address + "/" + length)
	if err != nil {
		return refuse("%q is no network length for %s", length, address)
	}
	if addr := prefix.Addr(); addr.Is4In6() {
		if prefix.Bits() < 96 {
			return refuse("it mixes IPv4-mapped addresses with others")
		}
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	if prefix != prefix.Masked() {
		whole := Target{prefix: prefix.Masked()}
		single := Target{prefix: netip.PrefixFrom(prefix.Addr(), prefix.Addr().BitLen())}
		return hinted(refuse("%s is no network address", address), fmt.Sprintf("write %s for the network, %s for the address", whole.place(), single.place()))
	}
	t.prefix = prefix
	return nil
}

// setAddress unmaps the address, because every kernel treats ::ffff:10.1.2.3 as the IPv4
// address. So both have one canonical form.
func (t *Target) setAddress(text string) *refusal {
	if strings.Contains(text, "%") {
		return refuse("it has a zone, which means nothing inside a sandbox")
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		return refuse("%q is no IPv6 address", text)
	}
	addr = addr.Unmap()
	t.prefix = netip.PrefixFrom(addr, addr.BitLen())
	return nil
}

// bracketed parses [IPV6], [IPV6]/BITS and [IPV6/BITS], with or without ports.
func (t Target) bracketed(rest string) (Target, *refusal) {
	inside, after, found := strings.Cut(rest[1:], "]")
	if !found {
		return t, refuse("the ] is missing")
	}
	if !strings.Contains(inside, ":") {
		return t, hinted(refuse("brackets are for IPv6 addresses"), "write it without brackets")
	}
	tail, ports, hasPorts := strings.Cut(after, ":")
	address, length, network := strings.Cut(inside, "/")
	if !network && tail != "" {
		if length, network = strings.CutPrefix(tail, "/"); !network {
			return t, refuse("%s follows the bracket", quote(tail))
		}
	} else if tail != "" {
		return t, refuse("%s follows the bracket", quote(tail))
	}
	err := t.setAddress(address)
	if err == nil && network {
		err = t.setNetwork(address, length)
	}
	if err != nil || !hasPorts {
		return t, err
	}
	return t.withPorts(ports)
}

// bareIPv6 parses an IPv6 address or network without brackets, which cannot have a port. If
// the end could be a port, the text is refused: a deny rule that took it for a part of the
// address would miss the intended one.
func (t Target) bareIPv6(rest string) (Target, *refusal) {
	address, length, network := strings.Cut(rest, "/")
	if _, err := netip.ParseAddr(address); err != nil {
		if host, _, found := strings.Cut(rest, ":"); found && !strings.Contains(host, "/") && isPlainName(host) {
			return t, hinted(refuse("it has more than one colon"), fmt.Sprintf("write %s:443", host))
		}
		return t, refuse("%s is neither an IPv6 address nor a name with one port", quote(rest))
	}
	if network {
		if bits, port, found := strings.Cut(length, ":"); found {
			return t, hinted(refuse("an IPv6 network with a port needs brackets"), fmt.Sprintf("write [%s]/%s:%s", address, bits, port))
		}
		if err := t.setAddress(address); err != nil {
			return t, err
		}
		return t, t.setNetwork(address, length)
	}
	if cut := strings.LastIndexByte(rest, ':'); cut > 0 {
		before, last := rest[:cut], rest[cut+1:]
		_, err := netip.ParseAddr(before)
		if _, wrong := parsePort(last); err == nil && wrong == nil {
			return t, hinted(refuse("its end could be a port"), fmt.Sprintf("write [%s]:%s or [%s]", before, last, rest))
		}
	}
	return t, t.setAddress(address)
}

// isPlainName serves hints.
func isPlainName(text string) bool {
	_, err := canonicalName(text)
	return err == nil
}

// withPorts parses what follows the last colon. It recognises paths and user names there,
// for the hint: HOST:443/v1, user:password@HOST, git@HOST:org/repo.
func (t Target) withPorts(text string) (Target, *refusal) {
	if text == "*" {
		t.ports = everyPort
		return t, nil
	}
	if host, _, path := strings.Cut(text, "/"); path {
		return t, withHint(refuse("it has a path"), t.place(), host)
	}
	if _, host, user := strings.Cut(text, "@"); user {
		return t, withHint(refuse("it has a user name"), host, "")
	}
	low, high, isRange := strings.Cut(text, "-")
	if !isRange {
		high = low
	}
	first, err := parsePort(low)
	if err != nil {
		return t, err
	}
	last, err := parsePort(high)
	if err != nil {
		return t, err
	}
	if first > last {
		return t, hinted(refuse("the port range is empty"), fmt.Sprintf("write %s:%d-%d", t.place(), last, first))
	}
	t.ports = portRange{first, last}
	return t, nil
}

// parsePort accepts one form only: decimal, no sign, no leading zero. Port 0 means any free
// port in bind(2), and cannot be connected to.
func parsePort(text string) (uint16, *refusal) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || text[0] == '0' {
		return 0, refuse("%s is no port: ports are 1 to 65535, or * for all", quote(text))
	}
	return uint16(port), nil
}
