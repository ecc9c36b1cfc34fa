package netns

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Config describes a namespace of clove's own.
type Config struct {
	// Everything leads all that the agent sends to the gate.
	Everything bool
	// HostPorts are the ports, 1 to 65535, that the gate serves on the agent's loopback.
	HostPorts []uint16
}

// Plan is everything that is set up inside a namespace, as a value. String shows it, Make
// and Apply carry it out, Listen makes its sockets. The zero Plan is loopback alone.
type Plan struct {
	everything bool
	ipv6       bool // false: all of IPv6 fails except the agent's own ::1
	hostPorts  []uint16
	engine     bool // for an OCI container's namespace, see EnginePlan
	owner      string
	policy     string
}

// Addresses of a plan. The gate's transparent sockets are bound to documentation addresses
// (RFC 5737, RFC 3849), which no host has. So the agent's own loopback ports stay free, and
// an agent that connects to one of these sockets directly is handled as one that wants to
// reach the documentation address. A process inside that binds one of them after the gate's
// end, or the name server's address, receives nothing there: the rules give packets to
// sockets with IP_TRANSPARENT only, for which no agent has the capability. While the gate
// lives, its ports are in use at the unspecified address.
var (
	loopback4  = netip.MustParsePrefix("127.0.0.0/8")
	loopback6  = netip.MustParsePrefix("::1/128")
	nameserver = netip.MustParseAddrPort("127.0.0.11:53")
	gate4      = netip.MustParseAddr("192.0.2.1")
	gate6      = netip.MustParseAddr("2001:db8::1")
)

// The agent's addresses besides 127.0.0.1 and ::1. glibc's getaddrinfo with AI_ADDRCONFIG
// ignores a protocol whose only address is loopback's.
var (
	own4 = netip.PrefixFrom(nameserver.Addr(), 32)
	own6 = netip.MustParsePrefix("2001:db8::11/128")
)

const (
	gatePort = 1 // of the sockets for everything but DNS
	dnsPort  = 53
)

// NewPlan makes a plan for this host; without IPv6 where the host has none.
func NewPlan(c Config) Plan {
	return newPlan(c, hasIPv6("/proc/sys/net/ipv6/conf/lo/disable_ipv6"))
}

// newPlan sorts the ports, so that equal configurations have equal plans and texts.
func newPlan(c Config, ipv6 bool) Plan {
	ports := slices.Clone(c.HostPorts)
	slices.Sort(ports)
	return Plan{everything: c.Everything, ipv6: ipv6, hostPorts: slices.Compact(ports)}
}

// hasIPv6 reads one file that covers all ways to be without IPv6: no module, ipv6.disable=1
// at boot, or the sysctl.
func hasIPv6(switchPath string) bool {
	value, err := os.ReadFile(switchPath)
	return err == nil && strings.TrimSpace(string(value)) == "0"
}

// String is the whole plan, one item a line, in the syntax of ip-route(8) and nft(8).
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

// Make makes a namespace according to the plan. The caller closes it.
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

// Apply changes n to the plan, whatever an earlier plan of the same kind left. All rules
// change in one transaction. It must not run concurrently with Listen.
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
		// Rules come before routes: at no moment is an address reachable without rules.
		if err := setRules(p.chains(), false); err != nil {
			return err
		}
		return addRoutes(p.routes())
	})
	if err != nil {
		return err
	}
	// Only a plan that is in force has sockets to listen on.
	n.plan = p
	return nil
}
