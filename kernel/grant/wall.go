package grant

import (
	"net/netip"
	"time"

	"clove.run/clove/agent"
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
