package netns

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// What tells packets apart in an engine's namespace. A process sets a mark only
// with CAP_NET_ADMIN or CAP_NET_RAW over the namespace, and a connection's mark
// only rules do. The values are clove's own, so that an engine's marks are none
// of them.
const (
	markGate   uint32 = 0x636c0701 // sent by the gate's own sockets
	markDivert uint32 = 0x636c0702 // on its way to the gate
	inbound    uint32 = 0x636c0703 // a connection that began outside
	// engineTable and enginePriority are of the route that brings what is diverted
	// to loopback.
	engineTable    = 0x636c07
	enginePriority = 100
)

// EnginePlan plans for n, which an engine made: it has interfaces, addresses and
// routes, and keeps them all. With everything, what is sent out comes to the
// gate, and only the gate's sockets (Socket) send; without, nobody sends or
// receives. What began outside is answered where there is a gate: who may reach
// the container is the engine's affair.
//
// owner names whose rules they are, in letters, digits and - : where another's
// hold, Apply gives ErrRuled and changes nothing; where the owner's own do, it
// completes them. policy names in the same letters what the gate will be told, for
// Serves.
func EnginePlan(n *Namespace, everything bool, owner, policy string) (Plan, error) {
	p := Plan{engine: true, everything: everything, owner: owner, policy: policy}
	err := n.do(func() error {
		p.ipv6 = hasIPv6("/proc/sys/net/ipv6/conf/lo/disable_ipv6")
		return checkMarks()
	})
	return p, err
}

// checkMarks refuses a namespace in which a connection that is accepted gets the
// mark of who connects: one from the gate would hand its mark to the container.
func checkMarks() error {
	const name = "/proc/sys/net/ipv4/tcp_fwmark_accept"
	value, err := os.ReadFile(name)
	if err == nil && strings.TrimSpace(string(value)) != "0" {
		err = fmt.Errorf("the sysctl %s is on there, which would let the container send as the gate", name)
	}
	return err
}

// engineSilent is a namespace whose only traffic is its own loopback's. The
// engine's name server listens there as well, and would ask outside.
func engineSilent() []chain {
	lo := match{out: "lo"}
	own := prefixOf(nameserver.Addr())
	return []chain{
		{hook: prerouting, priority: "mangle", rules: []rule{{match: match{in: "lo"}, verdict: accept}}},
		{hook: output, priority: "filter", rules: []rule{
			{to: own, protocol: unix.IPPROTO_TCP, verdict: resetTCP},
			{to: own, verdict: unreachable},
			{match: lo, verdict: accept},
			{protocol: unix.IPPROTO_TCP, verdict: resetTCP},
			{protocol: unix.IPPROTO_UDP, verdict: unreachable},
		}},
		{hook: postrouting, priority: "filter", rules: []rule{{match: lo, verdict: accept}}},
	}
}

// engineGated leads what is sent to the gate. The last chain is the one that
// holds: whatever the others missed leaves by no interface.
func (p Plan) engineGated() []chain {
	engineDNS := prefixOf(nameserver.Addr())
	gates, replies := match{mark: markGate}, match{replies: true}
	return []chain{
		// Docker's resolver is at an address of loopback, behind a translation of
		// ports that packets without connection tracking do not meet.
		{name: "untracked", open: true, hook: output, priority: "raw", rules: []rule{
			{to: engineDNS, match: match{mark: markGate, otherMark: true}, verdict: untrack},
		}},
		{name: "divert", open: true, route: true, hook: output, priority: "mangle", rules: []rule{
			{match: gates, verdict: accept},
			{to: engineDNS, verdict: divert},
			{match: match{out: "lo"}, verdict: accept},
			// Before answers: connection tracking forgets what it is full of, and then
			// takes a name server's late word for the beginning of a connection, in
			// which the container would have questions for answers.
			{protocol: unix.IPPROTO_TCP, port: dnsPort, verdict: divert},
			{protocol: unix.IPPROTO_UDP, port: dnsPort, verdict: divert},
			{match: replies, verdict: accept},
			{protocol: unix.IPPROTO_TCP, verdict: divert},
			{protocol: unix.IPPROTO_UDP, verdict: divert},
		}},
		{name: "arrive", hook: prerouting, priority: "mangle", rules: p.arriving()},
		// The kernel takes any datagram with the right addresses for an answer, and
		// over IPv6 a process may send from every address. Whom the gate asks is
		// never behind loopback. Errors are: the kernel's own come that way.
		{name: "receive", open: true, hook: input, priority: "filter", rules: []rule{
			{match: match{in: "lo", receiver: markGate}, protocol: unix.IPPROTO_TCP, verdict: drop},
			{match: match{in: "lo", receiver: markGate}, protocol: unix.IPPROTO_UDP, verdict: drop},
		}},
		{name: "leave", hook: postrouting, priority: "filter", rules: append([]rule{
			{match: match{out: "lo"}, verdict: accept},
			{match: gates, verdict: accept},
			{protocol: unix.IPPROTO_TCP, port: dnsPort, verdict: drop},
			{protocol: unix.IPPROTO_UDP, port: dnsPort, verdict: drop},
			{match: replies, verdict: accept},
		}, neighbours()...)},
	}
}

// arriving sees what comes from outside, and once more what was diverted.
func (p Plan) arriving() []rule {
	rules := []rule{
		// What is for the gate began with the gate, whatever is known of it.
		{match: match{in: "lo", otherIn: true, fresh: true, receiver: markGate}, verdict: accept},
		{match: match{in: "lo", otherIn: true, fresh: true}, verdict: remember},
		{match: match{in: "lo", otherIn: true}, verdict: accept},
		{match: match{mark: markDivert, otherMark: true}, verdict: accept},
	}
	for _, s := range p.sockets() {
		if s.at.Port() == dnsPort {
			rules = append(rules, s.rule(dnsPort))
		}
	}
	engineDNS := prefixOf(nameserver.Addr())
	rules = append(rules,
		rule{protocol: unix.IPPROTO_TCP, port: dnsPort, verdict: resetTCP},
		rule{protocol: unix.IPPROTO_UDP, port: dnsPort, verdict: unreachable},
		// Where Docker's resolver really listens is a port like any other.
		rule{to: engineDNS, protocol: unix.IPPROTO_TCP, verdict: resetTCP},
		rule{to: engineDNS, verdict: unreachable})
	for _, s := range p.sockets() {
		if s.at.Port() != dnsPort {
			rules = append(rules, s.rule(0))
		}
	}
	return append(rules,
		rule{protocol: unix.IPPROTO_TCP, verdict: resetTCP},
		rule{protocol: unix.IPPROTO_UDP, verdict: unreachable})
}

// neighbours lets IPv6 find its way, RFC 4861: the kernel sends these, and
// nobody without CAP_NET_RAW.
func neighbours() []rule {
	var rules []rule
	const solicitRouter, solicit, advertise = 133, 135, 136
	for _, kind := range []byte{solicitRouter, solicit, advertise} {
		rules = append(rules, rule{version: 6, protocol: unix.IPPROTO_ICMPV6, match: match{icmp: kind}, verdict: accept})
	}
	return rules
}

func prefixOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// policyRoute brings to loopback what the rules marked.
type policyRoute struct{ to netip.Prefix }

func (r policyRoute) String() string {
	return fmt.Sprintf("fwmark %#x lookup %d: local %s dev lo", markDivert, engineTable, r.to)
}

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

// option is the kernel's without which there is no rule.
func (r policyRoute) option() string {
	if r.to.Addr().Is6() {
		return "CONFIG_IPV6_MULTIPLE_TABLES"
	}
	return "CONFIG_IP_MULTIPLE_TABLES"
}

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
