package netns

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Config is what a namespace has besides loopback.
type Config struct {
	// Everything brings what the agent sends to any address to the gate.
	Everything bool
	// HostPorts are the ports, from 1 to 65535, that the gate serves on the agent's loopback.
	HostPorts []uint16
}

// Plan is all that is done inside a namespace, as a value: String shows it,
// Make does it, Listen makes its sockets. The zero Plan is loopback alone.
type Plan struct {
	everything bool
	ipv6       bool // without it everything of IPv6 but the agent's own ::1 fails
	hostPorts  []uint16
	engine     bool // the namespace is an engine's, see EnginePlan
	owner      string
	policy     string
}

// The addresses that a plan needs of its own. Those of the gate's transparent
// sockets are documentation's (RFC 5737, RFC 3849), which nobody else has: an
// agent that connects to one of these sockets directly comes out as one that
// wanted to go there, and its own loopback ports stay free. The ports are
// below 1024, where no agent can bind, capabilities inside notwithstanding. In an
// engine's namespace a container may, and finds them taken at the unspecified address.
var (
	loopback4  = netip.MustParsePrefix("127.0.0.0/8")
	loopback6  = netip.MustParsePrefix("::1/128")
	nameserver = netip.MustParseAddrPort("127.0.0.11:53")
	gate4      = netip.MustParseAddr("192.0.2.1")
	gate6      = netip.MustParseAddr("2001:db8::1")
)

// The agent's addresses beside 127.0.0.1 and ::1. glibc's getaddrinfo with
// AI_ADDRCONFIG counts a protocol as present only when it sees an address other
// than these two.
var (
	own4 = netip.PrefixFrom(nameserver.Addr(), 32)
	own6 = netip.MustParsePrefix("2001:db8::11/128")
)

const (
	gatePort = 1 // of the sockets for all but DNS
	dnsPort  = 53
)

// NewPlan plans for this host: where it has no IPv6, neither has the plan.
func NewPlan(c Config) Plan {
	return newPlan(c, hasIPv6("/proc/sys/net/ipv6/conf/lo/disable_ipv6"))
}

func newPlan(c Config, ipv6 bool) Plan {
	ports := slices.Clone(c.HostPorts)
	slices.Sort(ports)
	return Plan{everything: c.Everything, ipv6: ipv6, hostPorts: slices.Compact(ports)}
}

// hasIPv6 reads one file for all ways to be without: module absent, switched off at
// boot, or by sysctl.
func hasIPv6(switchPath string) bool {
	value, err := os.ReadFile(switchPath)
	return err == nil && strings.TrimSpace(string(value)) == "0"
}

// String is the whole plan, one thing a line, in the syntax of ip-route(8) and nft(8).
func (p Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "link lo up\n")
	if !p.ipv6 && (p.everything || !p.engine) {
		fmt.Fprintf(&b, "without IPv6: this host has none\n")
	}
	for _, a := range p.addresses() {
		fmt.Fprintf(&b, "address %s dev lo\n", a)
	}
	if chains := p.chains(); chains != nil {
		fmt.Fprintf(&b, "table inet %s {\n%s}\n", tableName, joined(chains))
	}
	for _, r := range p.policyRoutes() {
		fmt.Fprintf(&b, "rule and route %s\n", r)
	}
	for _, r := range p.routes() {
		fmt.Fprintf(&b, "route %s\n", r)
	}
	for _, s := range p.sockets() {
		fmt.Fprintf(&b, "listen %s\n", s)
	}
	return b.String()
}

// Make makes a namespace as planned. The caller closes it.
func (p Plan) Make() (*Namespace, error) {
	n, err := create()
	if err != nil {
		return nil, err
	}
	if err := p.Apply(n); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Apply brings n to the plan, whatever an earlier plan left of its own kind: all
// rules change in one transaction. It must not run beside Listen.
func (p Plan) Apply(n *Namespace) error {
	err := n.do(func() error {
		if p.engine {
			return p.applyToEngine()
		}
		if err := raiseLoopback(); err != nil {
			return err
		}
		if err := addAddresses(p.addresses()); err != nil {
			return err
		}
		// Rules before routes: nothing is reachable that no rule looks at.
		if err := setRules(p.chains(), false); err != nil {
			return err
		}
		return addRoutes(p.routes())
	})
	if err != nil {
		return err
	}
	n.plan = p
	return nil
}
