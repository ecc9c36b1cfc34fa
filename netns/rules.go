package netns

import (
	"cmp"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

const tableName = "clove"

// chain is a base chain that drops what no rule takes; without a hook, nothing comes to it.
type chain struct {
	name     string // "": the hook's
	route    bool   // of type route: a mark that it sets changes where the packet goes
	open     bool   // accepts what no rule takes
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

// rule is one line of nft(8): what is zero is not looked at.
type rule struct {
	from, to netip.Prefix
	version  int // of IP; 0 both, or as the prefixes say
	protocol int
	port     uint16 // destination
	match    match  // besides, in an engine's namespace
	verdict  verdict
	socket   netip.AddrPort // of verdict tproxy
}

type verdict string

const (
	accept      verdict = "accept"
	drop        verdict = "drop"
	resetTCP    verdict = "reject with tcp reset"
	unreachable verdict = "reject" // port unreachable, as nft(8) leaves unsaid
	tproxy      verdict = "tproxy" // to socket, and accept; the next rule where there is none
)

// chains are the whole rule set; nil without Everything.
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

// own are the agent's addresses: what is sent there is its own business.
func (p Plan) own() []netip.Prefix {
	if p.ipv6 {
		return []netip.Prefix{loopback4, loopback6, own6}
	}
	return []netip.Prefix{loopback4, loopback6}
}

// outgoing sees what the agent and the gate's sockets send. The gate only ever
// sends to the agent's addresses.
func (p Plan) outgoing() []rule {
	var rules []rule
	for _, own := range p.own() {
		rules = append(rules, rule{to: own, verdict: accept})
	}
	// Multicast and broadcast have no one receiver who could be allowed.
	for _, many := range []string{"224.0.0.0/4", "255.255.255.255/32", "ff00::/8"} {
		rules = append(rules, rule{to: netip.MustParsePrefix(many), verdict: drop})
	}
	// Every address of IPv4 is local, so an agent can bind any. Only with its
	// own does it come to the gate: an answer to another would come to nobody.
	for _, own := range p.own() {
		for _, protocol := range []int{unix.IPPROTO_TCP, unix.IPPROTO_UDP} {
			rules = append(rules, rule{from: own, protocol: protocol, verdict: accept})
		}
	}
	// The rest (ICMP, SCTP, raw) the kernel itself would answer, for any address.
	return rules
}

// incoming sees the same packets once more, as they come in again.
func (p Plan) incoming() []rule {
	var rules []rule
	for _, own := range p.own() {
		rules = append(rules, rule{to: own, verdict: accept})
	}
	for _, s := range p.sockets() {
		if s.transparent() && s.at.Port() == dnsPort {
			rules = append(rules, s.rule(dnsPort))
		}
	}
	// A lookup that finds no DNS socket must not become a plain connection.
	rules = append(rules,
		rule{protocol: unix.IPPROTO_TCP, port: dnsPort, verdict: resetTCP},
		rule{protocol: unix.IPPROTO_UDP, port: dnsPort, verdict: unreachable})
	for _, s := range p.sockets() {
		if s.transparent() && s.at.Port() != dnsPort {
			rules = append(rules, s.rule(0))
		}
	}
	// Without a gate everything fails, and at once.
	return append(rules,
		rule{protocol: unix.IPPROTO_TCP, verdict: resetTCP},
		rule{protocol: unix.IPPROTO_UDP, verdict: unreachable})
}

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
	protocol := map[int]string{unix.IPPROTO_TCP: "tcp", unix.IPPROTO_UDP: "udp"}[r.protocol]
	if r.port != 0 {
		words = append(words, fmt.Sprintf("%s dport %d", protocol, r.port))
	} else if protocol != "" {
		words = append(words, "meta l4proto "+protocol)
	}
	if r.verdict == tproxy {
		words = append(words, fmt.Sprintf("tproxy %s to %s accept", family(r.socket.Addr()), r.socket))
	} else {
		words = append(words, r.verdict.words())
	}
	return strings.Join(words, " ")
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "ip"
	}
	return "ip6"
}

// short leaves out a length that says nothing, as nft(8) does.
func short(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
