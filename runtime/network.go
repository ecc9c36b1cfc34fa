package runtime

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/egress/host"
	"clove.run/clove/egress/resolver"
	"clove.run/clove/netns"
)

// network is a namespace in the making. It needs nothing of the other steps
// and takes about as long as the store does, so both are done at once.
type network struct {
	made      chan struct{}    // closed when the other fields are set
	namespace *netns.Namespace // nil: the host's own
	err       error
}

// anticipateNetwork begins to make the namespace on a goroutine of its own; await returns
// how that ended.
func anticipateNetwork(spec agent.Spec) *network {
	n := &network{made: make(chan struct{})}
	go func() {
		defer close(n.made)
		switch {
		case spec.Network == agent.NetworkHost:
		case spec.Gated():
			n.namespace, n.err = netns.NewPlan(netns.Config{
				// With a socket the agent may be granted a part of the network later.
				Everything: spec.Network != agent.NetworkNone || spec.Kernel.HasSocket(), HostPorts: spec.Egress.HostPorts}).Make()
		default:
			n.namespace, n.err = netns.New()
		}
	}()
	return n
}

func (n *network) await() error {
	<-n.made
	return n.err
}

// path is empty for the host's own namespace.
func (n *network) path() string {
	if n.namespace == nil {
		return ""
	}
	return n.namespace.Path()
}

// lowestPort is the first port that the agent may listen on; 0 if it is unknown.
func (n *network) lowestPort() uint16 {
	if n.namespace != nil {
		return netns.LowestPort
	}
	port, _ := netns.HostLowestPort() // without it, a refused port is in no record
	return port
}

// abandon closes the namespace; it waits until it has been made.
func (n *network) abandon() error {
	if n.await() != nil || n.namespace == nil {
		return nil // there is none; the step that awaited it has the error
	}
	return n.namespace.Close()
}

// Nameserver is the address of the gate's DNS inside, the one that docker's
// users know: nothing else listens there.
const nameserver = "127.0.0.11"

// networkFiles are resolv.conf and hosts inside; empty means rootfs's own.
func networkFiles(spec agent.Spec) (resolvConf, hosts string, err error) {
	switch spec.Network {
	case agent.NetworkHost:
		return hostFiles()
	case agent.NetworkNone:
		if !spec.Kernel.HasSocket() {
			return "", "", nil
		}
	}
	text := "nameserver " + nameserver + "\noptions timeout:5 attempts:2\n"
	if domains := searchDomains(spec); len(domains) > 0 {
		text = "search " + strings.Join(domains, " ") + "\n" + text
	}
	return text, "", nil
}

// moreHosts are the lines of /etc/hosts that were asked for.
func moreHosts(spec agent.Spec) string {
	var lines strings.Builder
	for _, h := range spec.Hosts {
		fmt.Fprintf(&lines, "%s\t%s\n", h.Address, h.Name)
	}
	return lines.String()
}

// searchDomains returns the host's search domains that a rule names. The others would
// disclose the host's network to the agent.
func searchDomains(spec agent.Spec) []string {
	// With name servers of the run's own, the host's are not asked, and their domains mean
	// nothing.
	if len(spec.Egress.DNS) > 0 {
		return nil
	}
	return slices.DeleteFunc(resolver.New(resolver.Config{}).SearchDomains(), func(domain string) bool {
		return !slices.ContainsFunc(spec.Egress.Rules, func(r agent.EgressRule) bool {
			// "." before it: a rule for notexample.com does not name example.com.
			return !r.Deny && strings.Contains(r.Target, "."+domain)
		})
	})
}

// hostFiles are the host's own, for an agent in the host's network.
func hostFiles() (resolvConf, hosts string, err error) {
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", err
	}
	names, err := os.ReadFile("/etc/hosts")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", "", err
	}
	return string(resolv), string(names), nil
}

// IsHost reports whether an address is one of the host's own.
func IsHost(address netip.Addr) bool { return host.Owns(address) }

// rulesOf compiles the spec's rules.
func rulesOf(spec agent.Spec, owner agent.Owner) (*egress.Rules, error) {
	return egress.New(egress.Config{Mode: spec.Network, Rules: spec.Egress.Rules, HostPorts: spec.Egress.HostPorts, IsHost: host.Owns, User: owner.UID != 0})
}
