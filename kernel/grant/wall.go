package grant

import (
	"net/netip"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

// Rules returns the allow rules that the net grants mean at now, each with its grant's id
// as the source. `--allow TARGET` and a grant net:TARGET give the same rule but for the
// source. The grants are as Effective returns them; those that have expired give none, so
// the caller asks again when the next one expires.
//
// A derived grant gives no rule for an address that is the host's own by isHost (as in
// egress.Config; nil: none is): a rule that names one address opens it also there, and the
// network that it was derived from does not.
func Rules(grants []Grant, isHost func(netip.Addr) bool, now time.Time) []agent.EgressRule {
	var rules []agent.EgressRule
	for _, g := range grants {
		if g.Kind != Net || g.Expired(now) || g.Spent() {
			continue
		}
		if err := allowable(g.Pattern, isHost, g.Parent != ""); err != nil {
			continue // a damaged row would make egress.New refuse the others too
		}
		rules = append(rules, agent.EgressRule{Target: g.Pattern, Source: "grant " + g.ID})
	}
	return rules
}

// Network compiles what a run's gate decides by: the rules of its Spec, which the command line, a
// policy and `clove update` make, and those that the grants mean at now (Rules).
func Network(run agent.Run, grants []Grant, isHost func(netip.Addr) bool, now time.Time) (*egress.Rules, error) {
	granted, spec := Rules(grants, isHost, now), run.Spec
	if spec.Network == agent.NetworkNone && len(granted) > 0 {
		spec.Network = agent.NetworkAllowlist
	}
	return egress.New(egress.Config{Mode: spec.Network, Rules: slices.Concat(spec.Egress.Rules, granted), HostPorts: spec.Egress.HostPorts, IsHost: isHost, User: run.Owner.UID != 0})
}
