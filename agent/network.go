package agent

import "net/netip"

// The network modes.
const (
	NetworkNone      = "none"      // loopback only, no name resolution
	NetworkAllowlist = "allowlist" // only what the rules allow
	NetworkPublic    = "public"    // the public internet, and what the rules allow in addition
	NetworkHost      = "host"      // the host's own network, without any enforcement
)

// NetworkModes are all of them, from the narrowest to the widest.
var NetworkModes = []string{NetworkNone, NetworkAllowlist, NetworkPublic, NetworkHost}

// Egress is what the agent may reach through the gate, and which of its ports the host may reach.
type Egress struct {
	Rules     []EgressRule     `json:"rules,omitempty"`
	HostPorts []uint16         `json:"host_ports,omitempty"` // ports on the host's loopback, reachable at the same port of the agent's loopback
	Publish   []PublishedPort  `json:"publish,omitempty"`
	DNS       []netip.AddrPort `json:"dns,omitempty"` // name servers; none: the host's
	Limits    EgressLimits     `json:"limits"`
}

// EgressRule is one target that is allowed or denied. It is the one form of a rule on
// disk, on the wire and as the input of egress.New, which parses and compiles it.
type EgressRule struct {
	Deny   bool   `json:"deny,omitempty"`
	Target string `json:"target"` // as egress.ParseTarget reads it: a missing port depends on Deny, so it is kept as given
	Source string `json:"source"` // where it was given: "--allow", "--deny", an annotation, a document's name
}

// PublishedPort is a port of the agent that clients on the host can reach.
type PublishedPort struct {
	Host netip.AddrPort `json:"host"` // where the host listens; port 0: any free one
	Port uint16         `json:"port"` // the agent's, on its loopback
}

// EgressLimits are enforced by the gate and by the broker. Bytes 0 means no limit.
type EgressLimits struct {
	Connections int   `json:"connections"`     // open at once, in and out, UDP flows included
	PerSecond   int   `json:"per_second"`      // new ones; twice as many in a burst
	Bytes       int64 `json:"bytes,omitempty"` // in and out together, over the whole run
}

// Gated reports whether the run needs a gate. Host ports and published ports pass through
// it also where nothing else does.
func (s Spec) Gated() bool {
	return s.Network == NetworkAllowlist || s.Network == NetworkPublic ||
		s.Network == NetworkNone && (len(s.Egress.HostPorts) > 0 || len(s.Egress.Publish) > 0 || s.Kernel.HasSocket())
}

// NetworkUse counts what went through the gate.
type NetworkUse struct {
	Mode            string       `json:"mode"`
	Connections     int64        `json:"connections"`      // opened, in and out, UDP flows included
	ConnectionsPeak int64        `json:"connections_peak"` // open at once
	Refused         int64        `json:"refused"`          // connections, flows and names
	Limits          EgressLimits `json:"limits"`
	Lost            string       `json:"lost,omitempty"` // why the network failed during the run; empty: it did not
}
