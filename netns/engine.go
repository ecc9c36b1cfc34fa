package netns

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Packet and connection marks in an engine's namespace. A process can set a packet mark
// only with CAP_NET_ADMIN or CAP_NET_RAW over the namespace, and only rules set the mark of
// a connection. The values are chosen to differ from the marks that engines use ("cl" in
// ASCII). Decision 34 (docs/decisions) says why a mark is the way out.
const (
	markGate   uint32 = 0x636c0701 // sent by the gate's own sockets
	markDivert uint32 = 0x636c0702 // on its way to the gate
	inbound    uint32 = 0x636c0703 // a connection that was opened from outside
	// engineTable and enginePriority belong to the policy route that leads diverted packets
	// to loopback.
	engineTable    = 0x636c07
	enginePriority = 100
)

// EnginePlan plans the rules for n, a namespace that an engine made. Its interfaces,
// addresses and routes stay. With everything, what the container sends goes to the gate,
// and only the gate's sockets (Socket) send through an interface. Without, nothing is sent
// or received. Connections from outside are answered where there is a gate: the engine
// decides which peers may reach the container.
//
// owner, of letters, digits and '-', names the owner of the rules. Apply returns ErrRuled
// and changes nothing if another owner's rules are in force, and completes the owner's own.
// policy, of the same characters, names the gate's rules, for Serves.
func EnginePlan(n *Namespace, everything bool, owner, policy string) (Plan, error) {
	p := Plan{engine: true, everything: everything, owner: owner, policy: policy}
	err := n.do(func() error {
		// Read inside: the sysctl is the namespace's own, and an engine may have set it
		// there.
		p.ipv6 = hasIPv6("/proc/sys/net/ipv6/conf/lo/disable_ipv6")
		return checkMarks()
	})
	return p, err
}

// checkMarks rejects a namespace with net.ipv4.tcp_fwmark_accept. There an accepted socket
// inherits the mark of the packet, so a connection from the gate would give the gate's mark
// to the container.
func checkMarks() error {
	const name = "/proc/sys/net/ipv4/tcp_fwmark_accept"
	value, err := os.ReadFile(name)
	if err == nil && strings.TrimSpace(string(value)) != "0" {
		err = fmt.Errorf("the sysctl %s is on there, which would let the container send as the gate", name)
	}
	return err
}

// engineSilent allows only traffic on loopback. It also blocks the engine's name server:
// that listens on loopback, but asks servers outside on the container's behalf.
func engineSilent() []chain {
	lo := match{out: "lo"}
	own := prefixOf(nameserver.Addr())
	return []chain{
		{hook: prerouting, priority: "mangle", rules: []rule{{match: match{in: "lo"}, action: accept}}},
		{hook: output, priority: "filter", rules: []rule{
			// Before the rule for loopback, where that name server is.
			{to: own, protocol: unix.IPPROTO_TCP, action: resetTCP},
			{to: own, action: unreachable},
			{match: lo, action: accept},
			{protocol: unix.IPPROTO_TCP, action: resetTCP},
			{protocol: unix.IPPROTO_UDP, action: unreachable},
		}},
		{hook: postrouting, priority: "filter", rules: []rule{{match: lo, action: accept}}},
	}
}

// engineGated leads all outgoing traffic to the gate. The last chain, leave, is the one
// that enforces: a packet that the other chains missed does not leave through any
// interface.
func (p Plan) engineGated() []chain {
	engineDNS := prefixOf(nameserver.Addr())
	gates, replies := match{mark: markGate}, match{replies: true}
	return []chain{
		// Docker's resolver is at a loopback address, behind a port translation (nat).
		// Packets without connection tracking do not pass nat rules, so these packets reach
		// the gate's rules with the address that the container used.
		{name: "untracked", open: true, hook: output, priority: "raw", rules: []rule{
			{to: engineDNS, match: match{mark: markGate, otherMark: true}, action: untrack},
		}},
		// Of type route, so that the kernel routes the packet again after the mark is set.
		{name: "divert", open: true, route: true, hook: output, priority: "mangle", rules: []rule{
			{match: gates, action: accept},
			{to: engineDNS, action: divert},
			{match: match{out: "lo"}, action: accept},
			// DNS comes before the rule for replies. When the table of connection tracking
			// is full, entries are dropped early, and a late answer of a name server then
			// looks like a new connection from outside. The container could send DNS
			// queries as replies within it.
			{protocol: unix.IPPROTO_TCP, port: dnsPort, action: divert},
			{protocol: unix.IPPROTO_UDP, port: dnsPort, action: divert},
			{match: replies, action: accept},
			{protocol: unix.IPPROTO_TCP, action: divert},
			{protocol: unix.IPPROTO_UDP, action: divert},
		}},
		{name: "arrive", hook: prerouting, priority: "mangle", rules: p.arriving()},
		// The kernel delivers any datagram with matching addresses to a connected socket,
		// and over IPv6 a process may send from any local address. So the container could
		// forge answers to the gate's sockets. The gate's peers are never behind loopback,
		// so what arrives there for a gate socket is dropped. ICMP errors are not: the
		// kernel sends its own through loopback.
		{name: "receive", open: true, hook: input, priority: "filter", rules: []rule{
			{match: match{in: "lo", receiver: markGate}, protocol: unix.IPPROTO_TCP, action: drop},
			{match: match{in: "lo", receiver: markGate}, protocol: unix.IPPROTO_UDP, action: drop},
		}},
		{name: "leave", hook: postrouting, priority: "filter", rules: append([]rule{
			{match: match{out: "lo"}, action: accept},
			{match: gates, action: accept},
			{protocol: unix.IPPROTO_TCP, port: dnsPort, action: drop},
			{protocol: unix.IPPROTO_UDP, port: dnsPort, action: drop},
			{match: replies, action: accept},
		}, neighbours()...)},
	}
}

// arriving handles packets from outside, and the diverted packets when they arrive on loopback.
func (p Plan) arriving() []rule {
	rules := []rule{
		// A packet for a gate socket belongs to a connection of the gate, even if connection tracking calls it new.
		{match: match{in: "lo", otherIn: true, fresh: true, receiver: markGate}, action: accept},
		{match: match{in: "lo", otherIn: true, fresh: true}, action: remember},
		{match: match{in: "lo", otherIn: true}, action: accept},
		{match: match{mark: markDivert, otherMark: true}, action: accept},
	}
	for _, s := range p.sockets() {
		if s.at.Port() == dnsPort {
			rules = append(rules, s.rule(dnsPort))
		}
	}
	engineDNS := prefixOf(nameserver.Addr())
	rules = append(rules,
		rule{protocol: unix.IPPROTO_TCP, port: dnsPort, action: resetTCP},
		rule{protocol: unix.IPPROTO_UDP, port: dnsPort, action: unreachable},
		// Docker's resolver listens on a random port behind the translation. Block it at that port too.
		rule{to: engineDNS, protocol: unix.IPPROTO_TCP, action: resetTCP},
		rule{to: engineDNS, action: unreachable})
	for _, s := range p.sockets() {
		if s.at.Port() != dnsPort {
			rules = append(rules, s.rule(0))
		}
	}
	return append(rules,
		rule{protocol: unix.IPPROTO_TCP, action: resetTCP},
		rule{protocol: unix.IPPROTO_UDP, action: unreachable})
}

// neighbours allows IPv6 neighbour discovery, RFC 4861. Only the kernel sends these
// messages, and processes with CAP_NET_RAW.
func neighbours() []rule {
	var rules []rule
	const solicitRouter, solicit, advertise = 133, 135, 136
	for _, kind := range []byte{solicitRouter, solicit, advertise} {
		rules = append(rules, rule{version: 6, protocol: unix.IPPROTO_ICMPV6, match: match{icmp: kind}, action: accept})
	}
	return rules
}

// prefixOf is the prefix of one address.
func prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// policyRoute leads marked packets to loopback.
type policyRoute struct{ to netip.Prefix }

func (r policyRoute) String() string {
	return fmt.Sprintf("fwmark %#x lookup %d: local %s dev lo", markDivert, engineTable, r.to)
}

// policyRoutes lead marked packets to loopback. Without everything nothing is marked, and a
// namespace of clove's own uses plain routes instead.
func (p Plan) policyRoutes() []policyRoute {
	if !p.engine || !p.everything {
		return nil
	}
	routes := []policyRoute{{netip.MustParsePrefix("0.0.0.0/0")}}
	if p.ipv6 {
		routes = append(routes, policyRoute{netip.MustParsePrefix("::/0")})
	}
	return routes
}

// option is the kernel option that policy routing needs, for the error message.
func (r policyRoute) option() string {
	if r.to.Addr().Is6() {
		return "CONFIG_IPV6_MULTIPLE_TABLES"
	}
	return "CONFIG_IP_MULTIPLE_TABLES"
}

// rule selects the table by mark, before the main table (priority 32766), so that the
// engine's routes do not apply to diverted packets.
func (r policyRoute) rule() *netlink.Rule {
	rule := netlink.NewRule()
	rule.Family, rule.Priority, rule.Table, rule.Mark = unix.AF_INET, enginePriority, engineTable, markDivert
	if r.to.Addr().Is6() {
		rule.Family = unix.AF_INET6
	}
	return rule
}

func (r policyRoute) route() *netlink.Route {
	return &netlink.Route{LinkIndex: loopbackIndex, Dst: ipNet(r.to), Type: unix.RTN_LOCAL, Table: engineTable, Scope: netlink.SCOPE_HOST}
}
