package settings

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/internal/document"
	"clove.run/clove/kernel/grant"
)

// Names of the network that code asks for.
const (
	NetworkMode    = "network"
	Allow          = "allow"
	Deny           = "deny"
	Publish        = "publish"
	HostPort       = "host-port"
	DNS            = "dns"
	NetConnections = "net-connections"
	NetRate        = "net-rate"
	NetBytes       = "net-bytes"
	AddHost        = "add-host"
)

// Network is what the agent reaches. A mode or a rule that would be enforced less strictly than
// it reads is refused.
var Network = sync.OnceValue(func() *Section {
	return &Section{After: checkNetwork, Rows: []Setting{
		{
			Flag: NetworkMode, Key: "network.mode", Group: GroupNetwork, Enum: strings.Join(networkWords, "|"),
			Usage: "none, allowlist, ask (allowlist with --ask net), public (the internet, nothing private) or host (no isolation)", Default: "none; allowlist with --allow",
			Doc:   "none: nothing; allowlist: what allow names; ask: people are asked about the rest (ask: [net]); public: the internet; host: the host's own network, without any rule",
			Drops: dropsOfMode,
			Read:  one(readMode), Write: func(s agent.Spec) []string { return texts(s.Network) }, Wider: widerMode,
		},
		{
			Flag: Allow, Key: "network.allow", Form: List, Flags: Apart, Group: GroupNetwork,
			Usage: "reach NAME, *.NAME, @NAME, ADDRESS, CIDR or GROUP, [tcp://|udp://]TARGET[:PORT[-PORT]]; ports 80 and 443 if none",
			Doc:   "targets: api.example.com, *.example.com, 10.1.0.0/16, each with :PORT",
			Write: func(s agent.Spec) []string { return targets(s, false) }, Wider: widerAllow,
			Live: &Live{Usage: "reach TARGET"},
		},
		{
			Flag: Deny, Key: "network.deny", Form: List, Flags: Apart, Extends: Union, Group: GroupNetwork,
			Usage: "never reach TARGET, whatever --allow says; every port if none",
			Doc:   "targets that stay out of reach, whatever allows them",
			Write: func(s agent.Spec) []string { return targets(s, true) }, Wider: widerDeny,
			Live: &Live{Usage: "never reach TARGET"},
		},
		{
			Flag: HostPort, Key: "network.host_ports", Form: Ports, Flags: Join, Group: GroupNetwork,
			Usage: "let the agent reach this port of the host's 127.0.0.1 at its own 127.0.0.1",
			Pod:   "there is no host whose 127.0.0.1 could be meant: allow the address of a Service",
			Doc:   "ports of the host's 127.0.0.1",
			Read:  readHostPorts, Write: func(s agent.Spec) []string { return PortTexts(s.Egress.HostPorts) },
			Wider: func(base, wide agent.Spec) []Difference {
				if base.Network == agent.NetworkHost {
					return nil
				}
				return beyond(PortTexts(base.Egress.HostPorts), PortTexts(wide.Egress.HostPorts), slices.Contains)
			},
		},
		{
			Flag: Publish, Manifest: "network.publish", Short: "p", Form: List, Flags: Join, Group: GroupNetwork,
			Usage: "let the host's clients reach a port of the agent, [IP:]HOSTPORT:PORT; 127.0.0.1 if no IP",
			Pod:   "kubectl port-forward reaches a port of the pod; for others make a Service",
			Read:  each(readPublished),
		},
		{
			Flag: DNS, Key: "network.dns", Form: List, Group: GroupNetwork, Usage: "name server to ask, ADDRESS[:PORT]", Default: "the host's",
			Pod:  "the cluster's own name servers answer",
			Doc:  "name servers",
			Read: each(readDNS), Write: func(s agent.Spec) []string { return servers(s) },
			Wider: func(base, wide agent.Spec) []Difference {
				if !HasRules(wide.Network) || base.Network == agent.NetworkHost {
					return nil
				}
				if len(base.Egress.DNS) > 0 && len(wide.Egress.DNS) == 0 {
					return more(true, list(servers(base)), "the host's")
				}
				return beyond(servers(base), servers(wide), slices.Contains)
			},
		},
		ofGate(amount[int]{unit: numbers, at: func(s *agent.Spec) *int { return &s.Egress.Limits.Connections }, read: readConnections, unlimited: true}.row(Setting{
			Flag: NetConnections, Key: "network.connections", Group: GroupNetwork, Usage: "connections open at once",
			Pod: "the gate on the node has a fixed limit",
		})),
		ofGate(amount[int]{unit: numbers, at: func(s *agent.Spec) *int { return &s.Egress.Limits.PerSecond }, read: readConnections, unlimited: true}.row(Setting{
			Flag: NetRate, Key: "network.rate", Group: GroupNetwork, Usage: "new connections per second, twice as many in a burst",
			Pod: "the gate on the node has a fixed limit",
			Doc: "new connections per second",
		})),
		ofGate(amount[int64]{unit: bytes, at: func(s *agent.Spec) *int64 { return &s.Egress.Limits.Bytes }, read: sizeFrom(1), unlimited: true}.row(Setting{
			Flag: NetBytes, Key: "network.bytes", Group: GroupNetwork, Usage: "bytes in and out together, over the whole run",
			Pod: "use --timeout, and a NetworkPolicy of the cluster's",
			Doc: "size, in and out together, over the whole run",
		})),
	}}
})

// Hosts are lines of /etc/hosts.
var Hosts = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{{
		Flag: AddHost, Manifest: "network.hosts", Form: List, Flags: Join, Group: GroupNetwork,
		Usage: "line of its /etc/hosts, NAME:ADDRESS; what it may reach, --allow says",
		Pod:   "add hostAliases to the Job's pod",
		Read:  each(readHost),
	}}}
})

// HasRules reports whether a mode of the network is one with rules.
func HasRules(mode string) bool { return mode != agent.NetworkNone && mode != agent.NetworkHost }

// dropsOfMode returns the settings that a mode makes void: allow rules mean nothing where there is
// no network, or no rule. Deny rules stay, for a document that extends this one.
func dropsOfMode(mode string) []string {
	if HasRules(mode) {
		return nil
	}
	return []string{Allow, DNS, HostPort}
}

// NetworkAsk is short for an allowlist, with questions about what it does not cover.
const NetworkAsk = "ask"

// networkWords are what may be written for a mode.
var networkWords = slices.Insert(slices.Clone(agent.NetworkModes), 2, NetworkAsk)

func readMode(r *Reader, mode string) error {
	if mode == NetworkAsk {
		r.Spec.Network = agent.NetworkAllowlist
		return readAsk(r, agent.AskNet)
	}
	if !slices.Contains(agent.NetworkModes, mode) {
		hint := document.Meant(mode, networkWords, "write one of "+strings.Join(networkWords, ", "))
		if kind, _, _ := strings.Cut(mode, ":"); slices.Contains([]string{"bridge", "default", "container"}, kind) {
			hint = "agents have no network together: public is the internet, --allow names what else it reaches, and -p lets the host reach a port of it"
		}
		return Invalid(NetworkMode, hint, "%q is not a network mode", mode)
	}
	r.Spec.Network = mode
	return nil
}

func widerMode(base, wide agent.Spec) []Difference {
	above := slices.Index(agent.NetworkModes, wide.Network) > slices.Index(agent.NetworkModes, base.Network)
	return more(above, base.Network, wide.Network)
}

// readRules reads the policy's rules and those of the flags. The syntax of targets is left to
// checkNetwork, which compiles all rules at once. Rules without a mode mean an allowlist, and so do
// questions: the user named what is to be reached, or answers later.
func (r *Reader) readRules() {
	asks := agent.Kernel{Asks: slices.Concat(r.Values[Asks], r.Policy.Values[Asks])}.People(agent.AskNet) > 0
	if (len(r.Values[Allow])+len(r.Values[Deny]) > 0 || asks) && !r.Has(NetworkMode) {
		r.Spec.Network = agent.NetworkAllowlist
	}
	deny := r.Policy.Values[Deny]
	if mode := r.Policy.Text(NetworkMode); mode != "" && !HasRules(mode) {
		deny = nil // there is nothing to deny, or nothing that could
	}
	r.Spec.Egress.Rules = slices.Concat(rules(r.Policy.Values[Allow], deny, "policy "+r.Policy.Name, "policy "+r.Policy.Name),
		rules(r.Values[Allow], r.Values[Deny], "--"+Allow, "--"+Deny))
}

// ParseRules returns the rules for these targets, in the form that a spec and an update
// have, or the first one's mistake.
func ParseRules(allow, deny []string) ([]agent.EgressRule, error) {
	list := rules(allow, deny, "--"+Allow, "--"+Deny)
	_, err := egress.New(egress.Config{Mode: agent.NetworkAllowlist, Rules: list})
	return list, err
}

// rules writes beside each rule where it was given, so that `clove why` and records can name
// it.
func rules(allow, deny []string, allows, denies string) (list []agent.EgressRule) {
	for _, target := range allow {
		list = append(list, agent.EgressRule{Target: target, Source: allows})
	}
	for _, target := range deny {
		list = append(list, agent.EgressRule{Deny: true, Target: target, Source: denies})
	}
	return list
}

func targets(s agent.Spec, deny bool) (list []string) {
	for _, rule := range s.Egress.Rules {
		if rule.Deny == deny {
			list = append(list, rule.Target)
		}
	}
	return list
}

// widerAllow compares the targets, those of grants too. Where the mode got wider too, the
// targets are a part of it.
func widerAllow(base, wide agent.Spec) []Difference {
	if base.Network == agent.NetworkHost {
		return nil
	}
	reach, err := egress.Reach(base.Network, base.Egress.Rules)
	extra := targets(wide, false)
	if more, merr := egress.MoreThan(reachOf(base), egress.Config{Rules: wide.Egress.Rules}); err == nil && merr == nil {
		extra = more.Targets
	}
	for _, text := range wide.Kernel.Grants {
		if target, isNet := strings.CutPrefix(text, netGrant); isNet && !grant.Covered(base.Kernel.Grants, text) {
			if covered, cerr := reach.Covers(target); err != nil || cerr != nil || !covered {
				extra = append(extra, text)
			}
		}
	}
	return more(len(extra) > 0, cmp.Or(reach.String(), "nothing"), list(extra))
}

const netGrant = string(grant.Net) + ":"

func reachOf(s agent.Spec) egress.Config {
	return egress.Config{Mode: s.Network, Rules: s.Egress.Rules}
}

// widerDeny names the denials that matter: of what they deny, wide opens something, also by a
// grant.
func widerDeny(base, wide agent.Spec) []Difference {
	if !HasRules(base.Network) || wide.Network == agent.NetworkHost {
		return nil
	}
	reach := reachOf(wide)
	if reach.Mode == agent.NetworkNone {
		reach.Mode = ""
	}
	for _, text := range wide.Kernel.Grants {
		if target, isNet := strings.CutPrefix(text, netGrant); isNet {
			reach.Rules = append(slices.Clip(reach.Rules), agent.EgressRule{Target: target})
		}
	}
	gone := targets(base, true)
	if more, err := egress.MoreThan(reachOf(base), reach); err == nil {
		gone = more.Denials
	}
	return more(len(gone) > 0, list(gone)+" denied", "not denied")
}

// readHostPorts sorts the ports and drops repeated ones: the list is a set, and the same
// set gives the same spec.
func readHostPorts(r *Reader, texts []string) error {
	for _, text := range texts {
		port, err := ParsePort(text)
		if err != nil {
			return Invalid(HostPort, "write a number from 1 to 65535: the agent reaches the host's 127.0.0.1 there at its own 127.0.0.1", "%q is not a port", text)
		}
		r.Spec.Egress.HostPorts = append(r.Spec.Egress.HostPorts, port)
	}
	slices.Sort(r.Spec.Egress.HostPorts)
	r.Spec.Egress.HostPorts = slices.Compact(r.Spec.Egress.HostPorts)
	return nil
}

// PortTexts are ports as texts.
func PortTexts(numbers []uint16) (texts []string) {
	for _, port := range numbers {
		texts = append(texts, strconv.Itoa(int(port)))
	}
	return texts
}

func servers(s agent.Spec) (texts []string) {
	for _, server := range s.Egress.DNS {
		texts = append(texts, server.String())
	}
	return texts
}

// readConnections reads a number of connections.
func readConnections(_ *Reader, flag, text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, Invalid(flag, "write a whole number from 1 to 65535", "%q is not a number of connections", text)
	}
	return int(n), nil
}

// ofGate is for limits that the gate holds. Without one nothing passes, except in the host's
// network, where nothing counts.
func ofGate(s Setting) Setting {
	compare := s.Wider
	s.Wider = func(base, wide agent.Spec) []Difference {
		switch {
		case wide.Network == agent.NetworkHost:
			wide.Egress.Limits = agent.EgressLimits{}
		case !wide.Gated():
			return nil
		}
		return compare(base, wide)
	}
	return s
}

// checkNetwork refuses combinations of which a part would have no effect, and rules that do
// not compile.
func checkNetwork(r *Reader) error {
	r.readRules()
	e := r.Spec.Egress
	switch {
	case r.Spec.Network == agent.NetworkHost && len(e.Rules)+len(e.HostPorts)+len(e.Publish)+len(e.DNS) > 0:
		return Invalid(NetworkMode, "use --network public or allowlist with rules; in the host's own network no rule is enforced",
			"%q takes no rules, ports or name servers", r.Spec.Network)
	case r.Spec.Network == agent.NetworkNone && len(e.Rules) == 0 && len(e.DNS) > 0:
		return Invalid(DNS, "add --allow NAME, or --network public", "the agent may resolve no name, so a name server has no use")
	case r.Spec.Network == agent.NetworkNone && len(e.Rules) > 0:
		return Invalid(NetworkMode, "omit --network, or write --network allowlist", "%q allows nothing, but there are rules", r.Spec.Network)
	}
	_, err := Rules(*r.Spec)
	return err
}

// Rules compiles a spec's rules as a run would.
func Rules(spec agent.Spec) (*egress.Rules, error) {
	return egress.New(egress.Config{Mode: spec.Network, Rules: spec.Egress.Rules, HostPorts: spec.Egress.HostPorts})
}
