package imports

import (
	"net/netip"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/internal/document"
)

// target is a rule with the setting that it comes from.
type target struct{ text, setting, note string }

// allowName adds what may be reached. All systems mean by *.example.com what clove means: each
// name below it, at any depth, and not the name itself.
func (r *reader) allowName(setting, text string) {
	name, port, ok := r.destination(setting, text)
	if !ok {
		return
	}
	if isLoopback(name) {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 || name != "localhost" && name != "127.0.0.1" {
			r.refuse(setting, "it is the host's own loopback: name the port of 127.0.0.1, as localhost:8080")
			return
		}
		r.ports = append(r.ports, hostPort{uint16(number), setting})
		return
	}
	note := "each port there, 80 and 443 here"
	if port != "" {
		name, note = name+":"+port, ""
	}
	r.allow = append(r.allow, target{name, setting, note})
}

// denyName adds what may not be reached. Without a port, each port is meant, there and here.
func (r *reader) denyName(setting, text string) {
	if text == "*" {
		r.denyAll = setting
		return
	}
	name, port, ok := r.destination(setting, text)
	switch {
	case !ok:
		return
	case isLoopback(name):
		r.noLoopback = setting
		return
	case port != "":
		name += ":" + port
	}
	r.deny = append(r.deny, target{name, setting, ""})
}

func isLoopback(name string) bool {
	addr, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return name == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// destination splits and checks a name or an address with or without a port.
func (r *reader) destination(setting, text string) (name, port string, ok bool) {
	name = strings.ToLower(strings.TrimSpace(text))
	if at := strings.LastIndex(name, ":"); at >= 0 && (strings.Count(name, ":") == 1 || strings.HasSuffix(name[:at], "]")) {
		name, port = name[:at], name[at+1:]
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			r.refuse(setting, "%q is no port", port)
			return "", "", false
		}
	}
	if name == "localhost" {
		return name, port, true
	}
	// A word without a dot could be one of clove's groups, such as private.
	if !strings.ContainsAny(name, ".:") || strings.ContainsAny(name, "/@") || strings.ContainsFunc(name, document.Unprintable) {
		r.refuse(setting, "it is no name of a host with a dot, and no address")
		return "", "", false
	}
	full := name
	if port != "" {
		full += ":" + port
	}
	if _, err := egress.ParseTarget(full); err != nil {
		r.refuse(setting, "%s", agent.FailureOf(err).Message)
		return "", "", false
	}
	return name, port, true
}

// resolveNetwork chooses the mode.
func (p *plan) resolveNetwork() {
	if p.noLoopback != "" {
		p.ports = nil
		p.note(p.noLoopback, "carried: no port of the host's loopback is reached")
	}
	switch {
	case p.denyAll != "":
		p.note(p.denyAll, "carried: nothing is reached")
	case p.public != "":
		p.mode = agent.NetworkPublic
		return
	case len(p.allow)+len(p.ports) > 0:
		p.mode = agent.NetworkAllowlist
		return
	}
	p.mode = agent.NetworkNone
	for _, list := range [][]target{p.allow, p.deny} {
		for _, t := range list {
			p.note(t.setting, "carried: nothing is reached")
		}
	}
	p.allow, p.deny, p.ports = nil, nil, nil
}

// denyAddress adds an address or a network that names may not lead to.
func (r *reader) denyAddress(setting, text string) {
	prefix, err := netip.ParsePrefix(text)
	if addr, failed := netip.ParseAddr(text); err != nil && failed == nil {
		prefix, err = netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	if err != nil || prefix.Addr().Zone() != "" {
		r.refuse(setting, "it is no address and no network")
		return
	}
	prefix = prefix.Masked()
	full := prefix.String()
	if prefix.Addr().Is6() {
		full = "[" + prefix.Addr().String() + "]/" + strconv.Itoa(prefix.Bits())
	}
	if _, err := egress.ParseTarget(full); err != nil {
		r.refuse(setting, "%s", agent.FailureOf(err).Message)
		return
	}
	r.deny = append(r.deny, target{full, setting, ""})
}
