package shadow

import (
	"clove.run/clove/agent"
	"clove.run/clove/kernel/grant"
)

// Grants decides over what a run's agent was granted. A grant given to the live run is
// assumed to be given under the shadow, too: what neither policy grants counts as allowed.
type Grants struct {
	own, shadow []grant.Scope
}

// NewGrants reads the grants of a spec and of its shadow.
func NewGrants(spec agent.Spec) (g Grants, err error) {
	if g.own, err = scopes(spec.Kernel.Grants); err != nil {
		return g, err
	}
	g.shadow, err = scopes(spec.Shadowed().Kernel.Grants)
	return g, err
}

func scopes(texts []string) (all []grant.Scope, err error) {
	for _, text := range texts {
		scope, err := grant.Parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, scope)
	}
	return all, nil
}

// Refuses reports whether the shadow lacks a grant for what was allowed, and the rule of it.
func (g Grants) Refuses(text string) (what, rule string, refused bool) {
	scope, err := grant.Parse(text)
	if err != nil || covers(g.shadow, scope) || !covers(g.own, scope) {
		return "", "", false
	}
	return scope.String(), "no grant covers it", true
}

func covers(all []grant.Scope, what grant.Scope) bool {
	for _, scope := range all {
		if scope.Covers(what) {
			return true
		}
	}
	return false
}

// Rules are the network rules of the shadow with those of net grants that are in force: of the
// grants that the run began with only those that the shadow has, and all that came later.
func (g Grants) Rules(spec agent.Spec, granted []agent.EgressRule) agent.Spec {
	shadow := spec.Shadowed()
	for _, rule := range granted {
		what, err := grant.Parse(string(grant.Net) + ":" + rule.Target)
		if err != nil || covers(g.own, what) && !covers(g.shadow, what) {
			continue
		}
		shadow.Egress.Rules = append(shadow.Egress.Rules[:len(shadow.Egress.Rules):len(shadow.Egress.Rules)], rule)
		if shadow.Network == agent.NetworkNone {
			shadow.Network = agent.NetworkAllowlist
		}
	}
	return shadow
}
