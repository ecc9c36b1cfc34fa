package main

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

// readNetwork never takes a word that would be held less strictly than it says.
func (r *request) readNetwork() error {
	for _, step := range []func(*request) error{
		(*request).readNetworkMode, (*request).readRules, (*request).readHostPorts,
		(*request).readPublished, (*request).readDNS, (*request).readNetworkLimits, (*request).checkNetwork,
	} {
		if err := step(r); err != nil {
			return err
		}
	}
	return nil
}

// readNetworkMode: who allows something wants a list of what is allowed.
func (r *request) readNetworkMode() error {
	mode := r.flags.String(flagNetwork)
	if mode == "" && len(r.flags.StringSlice(flagAllow))+len(r.flags.StringSlice(flagDeny)) > 0 {
		mode = agent.NetworkAllowlist
	}
	if mode == "" {
		return nil
	}
	if !slices.Contains(agent.NetworkModes, mode) {
		return invalid(flagNetwork, "write one of "+strings.Join(agent.NetworkModes, ", "), "%q is not a network mode", mode)
	}
	r.spec.Network = mode
	return nil
}

func (r *request) readRules() error {
	for _, flag := range []string{flagAllow, flagDeny} {
		for _, text := range r.flags.StringSlice(flag) {
			rule, err := parseRule(flag, text)
			if err != nil {
				return err
			}
			r.spec.Egress.Rules = append(r.spec.Egress.Rules, rule)
		}
	}
	return nil
}

// parseRule keeps what was written: a default port depends on the verb.
func parseRule(flag, text string) (agent.EgressRule, error) {
	if _, err := egress.ParseTarget(text); err != nil {
		f := agent.FailureOf(err)
		return agent.EgressRule{}, invalid(flag, f.Hint, "%s", f.Message)
	}
	return agent.EgressRule{Deny: flag == flagDeny, Target: text, Source: "--" + flag}, nil
}

func (r *request) readHostPorts() error {
	for _, text := range r.flags.StringSlice(flagHostPort) {
		port, err := parsePort(text)
		if err != nil {
			return invalid(flagHostPort, "write a number from 1 to 65535: the agent reaches the host's 127.0.0.1 there at its own 127.0.0.1", "%q is not a port", text)
		}
		r.spec.Egress.HostPorts = append(r.spec.Egress.HostPorts, port)
	}
	slices.Sort(r.spec.Egress.HostPorts)
	r.spec.Egress.HostPorts = slices.Compact(r.spec.Egress.HostPorts)
	return nil
}

func parsePort(text string) (uint16, error) {
	port, err := strconv.ParseUint(text, 10, 16)
	if err == nil && (port == 0 || text[0] == '0' || text[0] == '+') {
		err = strconv.ErrRange
	}
	return uint16(port), err
}

const publishHint = "write [IP:]HOSTPORT:PORT, for example 8080:80 or 127.0.0.1:8080:80"

// readPublished: loopback unless an address says otherwise, so that publishing
// never opens the agent to the network by accident.
func (r *request) readPublished() error {
	for _, text := range r.flags.StringSlice(flagPublish) {
		published, err := parsePublished(text)
		if err != nil {
			return invalid(flagPublish, publishHint, "cannot publish %q: %v", text, err)
		}
		if slices.Contains(r.spec.Egress.Publish, published) {
			return invalid(flagPublish, "name each one once", "%q is published twice", text)
		}
		r.spec.Egress.Publish = append(r.spec.Egress.Publish, published)
	}
	return nil
}

func parsePublished(text string) (agent.PublishedPort, error) {
	var none agent.PublishedPort
	rest, inside, found := cutLast(text, ":")
	if !found {
		return none, fmt.Errorf("it names one port")
	}
	port, err := parsePort(inside)
	if err != nil {
		return none, fmt.Errorf("%q is not a port", inside)
	}
	host, outside, found := cutLast(rest, ":")
	if !found {
		host, outside = "127.0.0.1", rest
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	if err != nil || address.Zone() != "" {
		return none, fmt.Errorf("%q is not an address", host)
	}
	hostPort := uint16(0)
	if outside != "0" {
		if hostPort, err = parsePort(outside); err != nil {
			return none, fmt.Errorf("%q is not a port", outside)
		}
	}
	return agent.PublishedPort{Host: netip.AddrPortFrom(address.Unmap(), hostPort), Port: port}, nil
}

// cutLast is strings.Cut at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

func (r *request) readDNS() error {
	for _, text := range r.flags.StringSlice(flagDNS) {
		address, err := netip.ParseAddr(text)
		server := netip.AddrPortFrom(address, 53)
		if err != nil {
			server, err = netip.ParseAddrPort(text)
		}
		if err != nil || server.Port() == 0 || server.Addr().Zone() != "" {
			return invalid(flagDNS, "write an address, or ADDRESS:PORT, for example 9.9.9.9 or [2620:fe::fe]:53", "%q is not a name server", text)
		}
		r.spec.Egress.DNS = append(r.spec.Egress.DNS, server)
	}
	return nil
}

func (r *request) readNetworkLimits() (err error) {
	limits := &r.spec.Egress.Limits
	if limits.Connections, err = r.count(flagNetConnections, limits.Connections); err != nil {
		return err
	}
	if limits.PerSecond, err = r.count(flagNetRate, limits.PerSecond); err != nil {
		return err
	}
	if text := r.flags.String(flagNetBytes); text != "" {
		limits.Bytes, err = parseSize(flagNetBytes, text, 1)
	}
	return err
}

// count reads a number of things, at least one.
func (r *request) count(flag string, standard int) (int, error) {
	text := r.flags.String(flag)
	if text == "" {
		return standard, nil
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, invalid(flag, "write a whole number from 1 to 65535", "%q is not a number of connections", text)
	}
	return int(n), nil
}

// checkNetwork refuses combinations of which a part would not hold.
func (r *request) checkNetwork() error {
	e := r.spec.Egress
	switch {
	case r.spec.Network == agent.NetworkHost && len(e.Rules)+len(e.HostPorts)+len(e.Publish)+len(e.DNS) > 0:
		return invalid(flagNetwork, "use --network public or allowlist with rules; in the host's own network nothing holds them",
			"%q takes no rules, ports or name servers", r.spec.Network)
	case r.spec.Network == agent.NetworkNone && len(e.Rules) == 0 && len(e.DNS) > 0:
		return invalid(flagDNS, "add --allow NAME, or --network public", "there is no name that the agent may ask for")
	case r.spec.Network == agent.NetworkNone && len(e.Rules) > 0:
		return invalid(flagNetwork, "leave --network away, or write --network allowlist", "%q allows nothing, but there are rules", r.spec.Network)
	}
	_, err := rulesFor(r.spec)
	return err
}

// rulesFor compiles a spec's rules as a run would.
func rulesFor(spec agent.Spec) (*egress.Rules, error) {
	return egress.New(egress.Config{Mode: spec.Network, Rules: spec.Egress.Rules, HostPorts: spec.Egress.HostPorts})
}

// hostAndPort splits HOST[:PORT]; port 0 means none was given.
func hostAndPort(text string) (host string, port uint16, err error) {
	host, number, splitErr := net.SplitHostPort(text)
	if splitErr != nil {
		return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"), 0, nil
	}
	port, err = parsePort(number)
	return host, port, err
}
