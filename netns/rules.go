package netns

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// tableName is the one nft table that clove makes and replaces; tables of others are never
// touched.
const tableName = "clove"

// chain is a base chain whose policy is drop. A chain without a hook sees no packets, see claims.
type chain struct {
	name     string // "": the name of the hook
	route    bool   // chain type route: the packet is routed again after a rule changed its mark
	open     bool   // the policy is accept
	hook     hook
	priority string
	rules    []rule
}

type hook string

const (
	prerouting  hook = "prerouting"
	input       hook = "input"
	output      hook = "output"
	postrouting hook = "postrouting"
)

// rule is one rule of nft(8). A zero field is no condition.
type rule struct {
	from, to netip.Prefix
	version  int // of IP; 0: both, or that of the prefixes
	protocol int
	port     uint16 // destination
	match    match  // further conditions, in an engine's namespace only
	action   action
	socket   netip.AddrPort // of action tproxy
}

type action string

const (
	accept      action = "accept"
	drop        action = "drop"
	resetTCP    action = "reject with tcp reset"
	unreachable action = "reject" // port unreachable, the default of nft(8)
	prohibited  action = "reject with icmpx admin-prohibited"
	tproxy      action = "tproxy" // to socket, and accept; if the socket does not exist, the next rule applies
)

// chains is the whole rule set; nil without Everything.
func (p Plan) chains() []chain {
	switch {
	case p.engine && p.everything:
		return append(p.claims(), p.engineGated()...)
	case p.engine:
		return append(p.claims(), engineSilent()...)
	case !p.everything:
		return nil
	}
	return []chain{
		{hook: prerouting, priority: "mangle", rules: p.incoming()},
		{hook: output, priority: "filter", rules: p.outgoing()},
	}
}

// own are the agent's own addresses. The gate does not concern itself with traffic to them.
func (p Plan) own() []netip.Prefix {
	if p.ipv6 {
		return []netip.Prefix{loopback4, loopback6, own6}
	}
	return []netip.Prefix{loopback4, loopback6}
}

// outgoing filters what the agent and the gate's sockets send. The gate sends to the
// agent's addresses only.
func (p Plan) outgoing() []rule {
	var rules []rule
	for _, own := range p.own() {
		rules = append(rules, rule{to: own, action: accept})
	}
	// Multicast and broadcast have no single receiver that a rule could allow.
	for _, many := range []string{"224.0.0.0/4", "255.255.255.255/32", "ff00::/8"} {
		rules = append(rules, rule{to: netip.MustParsePrefix(many), action: drop})
	}
	// Every IPv4 address is local here, so an agent can bind any of them. Only packets from
	// its own addresses go to the gate: an answer to another would match no rule here.
	// ICMP is refused on arrival: a drop here would be EPERM, which ping does not explain.
	for _, own := range p.own() {
		for _, protocol := range []int{unix.IPPROTO_TCP, unix.IPPROTO_UDP, icmp(own.Addr())} {
			rules = append(rules, rule{from: own, protocol: protocol, action: accept})
		}
	}
	// The rest (SCTP, raw) is dropped: the kernel would answer it itself, for any address.
	return rules
}

// incoming handles the same packets again when they arrive on loopback.
func (p Plan) incoming() []rule {
	rules := p.toNameserver()
	for _, own := range p.own() {
		rules = append(rules, rule{to: own, action: accept})
	}
	for _, s := range p.sockets() {
		// DNS first: the rules for everything else would match port 53 too.
		if s.transparent() && s.at.Port() == dnsPort {
			rules = append(rules, s.rule(dnsPort))
		}
	}
	// If there is no DNS socket, a query must not reach the socket for ordinary connections.
	rules = append(rules,
		rule{protocol: unix.IPPROTO_TCP, port: dnsPort, action: resetTCP},
		rule{protocol: unix.IPPROTO_UDP, port: dnsPort, action: unreachable})
	for _, s := range p.sockets() {
		if s.transparent() && s.at.Port() != dnsPort {
			rules = append(rules, s.rule(0))
		}
	}
	// Without a gate everything fails, and without a timeout.
	return append(rules,
		rule{protocol: unix.IPPROTO_TCP, action: resetTCP},
		rule{protocol: unix.IPPROTO_UDP, action: unreachable},
		rule{protocol: unix.IPPROTO_ICMP, action: prohibited},
		rule{protocol: unix.IPPROTO_ICMPV6, action: prohibited})
}

// toNameserver leads to the gate although the name server has one of the agent's own
// addresses. No socket is bound there, so that the agent cannot take the gate's place.
func (p Plan) toNameserver() []rule {
	own := prefixOf(nameserver.Addr())
	var rules []rule
	for _, s := range gateSockets(gate4)[:2] {
		r := s.rule(dnsPort)
		r.to, r.version = own, 0
		rules = append(rules, r)
	}
	return append(rules,
		rule{to: own, protocol: unix.IPPROTO_TCP, port: dnsPort, action: resetTCP},
		rule{to: own, protocol: unix.IPPROTO_UDP, port: dnsPort, action: unreachable})
}

// icmp is the protocol of echo requests in the address's version of IP.
func icmp(a netip.Addr) int {
	if a.Is4() {
		return unix.IPPROTO_ICMP
	}
	return unix.IPPROTO_ICMPV6
}

// joined is the text of the chains, in their order.
func joined(chains []chain) string {
	var b strings.Builder
	for _, c := range chains {
		b.WriteString(c.String())
	}
	return b.String()
}

// String is the chain as nft(8) lists it.
func (c chain) String() string {
	var b strings.Builder
	if c.hook == "" {
		fmt.Fprintf(&b, "\tchain %s {\n\t}\n", c.called())
		return b.String()
	}
	kind, policy := "filter", "drop"
	if c.route {
		kind = "route"
	}
	if c.open {
		policy = "accept"
	}
	fmt.Fprintf(&b, "\tchain %s {\n\t\ttype %s hook %s priority %s; policy %s;\n", c.called(), kind, c.hook, c.priority, policy)
	for _, r := range c.rules {
		fmt.Fprintf(&b, "\t\t%s\n", r)
	}
	b.WriteString("\t}\n")
	return b.String()
}

// called is the chain's name.
func (c chain) called() string { return cmp.Or(c.name, string(c.hook)) }

func (r rule) String() string {
	words := r.match.words()
	if r.version != 0 {
		words = append(words, fmt.Sprintf("meta nfproto ipv%d", r.version))
	}
	if r.from.IsValid() {
		words = append(words, fmt.Sprintf("%s saddr %s", family(r.from.Addr()), short(r.from)))
	}
	if r.to.IsValid() {
		words = append(words, fmt.Sprintf("%s daddr %s", family(r.to.Addr()), short(r.to)))
	}
	protocol := map[int]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp",
		unix.IPPROTO_ICMP: "icmp", unix.IPPROTO_ICMPV6: "ipv6-icmp"}[r.protocol]
	if r.port != 0 {
		words = append(words, fmt.Sprintf("%s dport %d", protocol, r.port))
	} else if protocol != "" && r.match.icmp == 0 {
		words = append(words, "meta l4proto "+protocol)
	}
	if r.action == tproxy {
		words = append(words, fmt.Sprintf("tproxy %s to %s accept", family(r.socket.Addr()), r.socket))
	} else {
		words = append(words, r.action.words())
	}
	return strings.Join(words, " ")
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "ip"
	}
	return "ip6"
}

// short omits the length of a single address, as nft(8) does.
func short(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
