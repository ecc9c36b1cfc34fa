package compare

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies/settings"
)

// moreID: files of the base system belong to ids, so another id reads other files. Root inside may
// become any, with the capability.
func moreID(at func(agent.User) uint32, capability string) func(pair) []Difference {
	return func(p pair) []Difference {
		has, asks := at(p.parent.User), at(p.child.User)
		dropped := slices.Contains(p.parent.CapDrop, capability) || slices.Contains(p.parent.CapDrop, agent.AllCapabilities)
		return more(has != asks && (p.parent.User.UID != 0 || dropped), has, asks)
	}
}

func inheritDrops(p pair, child *agent.Spec) {
	child.CapDrop = joined(child.CapDrop, p.parent.CapDrop)
}

// joined adds what is missing, in a list of its own.
func joined[T comparable](list, others []T) []T {
	list = slices.Clip(list)
	for _, other := range others {
		if !slices.Contains(list, other) {
			list = append(list, other)
		}
	}
	return list
}

// moreTargets leaves out what grants open: they are compared where they are derived.
func moreTargets(p pair) []Difference {
	base := egress.Config{Mode: p.parent.Network, Rules: p.parent.Egress.Rules, IsHost: p.IsHost}
	found, err := egress.MoreThan(base, egress.Config{Rules: p.child.Egress.Rules})
	if err != nil {
		return more(true, p.parent.Network, err)
	}
	reach, _ := egress.Reach(base.Mode, base.Rules)
	return more(len(found.Targets) > 0, reach, strings.Join(found.Targets, ", "))
}

func inheritDenials(p pair, child *agent.Spec) {
	if !settings.HasRules(child.Network) {
		return
	}
	denials := slices.DeleteFunc(slices.Clone(p.parent.Egress.Rules), func(r agent.EgressRule) bool { return !r.Deny })
	child.Egress.Rules = joined(child.Egress.Rules, denials)
}

func inheritDNS(p pair, child *agent.Spec) {
	if settings.HasRules(child.Network) && len(child.Egress.DNS) == 0 {
		child.Egress.DNS = p.parent.Egress.DNS
	}
}

// morePublished: on port 0 the host listens at another port for each.
func morePublished(p pair) (all []Difference) {
	has, asks := p.parent.Egress.Publish, p.child.Egress.Publish
	at := func(list []agent.PublishedPort, host netip.AddrPort) (n int) {
		for _, published := range list {
			everywhere := published.Host.Addr().IsUnspecified() && published.Host.Addr().Is4() == host.Addr().Is4() && host.Port() != 0
			if published.Host == host || everywhere && published.Host.Port() == host.Port() {
				n++
			}
		}
		return n
	}
	for i, published := range asks {
		room := at(has, published.Host)
		if published.Host.Port() == 0 && at(asks[:i], published.Host) >= room || room == 0 {
			all = append(all, more(true, len(has), published.Host)...)
		}
	}
	return all
}

func inheritRlimits(p pair, child *agent.Spec) {
	for _, limit := range p.parent.Limits.Rlimits {
		if !slices.ContainsFunc(child.Limits.Rlimits, func(own agent.Rlimit) bool { return own.Name == limit.Name }) {
			child.Limits.Rlimits = append(slices.Clip(child.Limits.Rlimits), limit)
		}
	}
}

// inheritTime also cuts a time that is inherited at the parent's deadline.
func inheritTime(p pair, child *agent.Spec) {
	limit := &child.Limits.WallClock
	if *limit != 0 {
		return
	}
	*limit = p.parent.Limits.WallClock
	if left := p.Deadline.Sub(p.Time); !p.Deadline.IsZero() && left > 0 && (*limit == 0 || *limit > left) {
		*limit = left
	}
}

// later looks at one start of the child. What starts it again holds that to the deadline, too.
func later(p pair) []Difference {
	limit, left := p.child.Limits.WallClock, p.Deadline.Sub(p.Time)
	if p.Deadline.IsZero() || limit != 0 && limit <= left {
		return nil
	}
	asks := "no time limit"
	if limit != 0 {
		asks = limit.String()
	}
	found := more(true, left.Round(time.Second).String()+" left", asks)
	if found[0].Hint = "narrow limits.timeout to " + left.Truncate(time.Second).String(); left < time.Second {
		found[0].Hint = "let the parent start it sooner"
	}
	return found
}

// moreNamespace: what is spent in a namespace is spent in those above it, too.
func moreNamespace(p pair) []Difference {
	has, asks := p.parent.Kernel.Namespace, p.child.Kernel.Namespace
	return more(has != "" && !within(asks, has), has, asks)
}

func unlogged(p pair) []Difference {
	return more(p.parent.Kernel.ModelLog && p.child.Kernel.HasModels() && !p.child.Kernel.ModelLog, "a log of its calls", "none")
}
