package grants

import (
	"fmt"
	"strconv"

	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
)

// ruleID begins the id of a rule of the run's network among its grants. No grant has such an id.
const ruleID = "rule:"

// checkNet answers grant.check about the network as the gate would: a deny rule beats a grant, and a
// rule allows without one.
func (g Grants) checkNet(c *service.Call, what grant.Scope, held []grant.Grant, answer *api.GrantCheckResult, out *service.Outcome) error {
	rules, err := grant.Network(c.Run, held, g.IsHost, c.Now)
	if err != nil || !what.Concrete() {
		return err
	}
	verdict := rules.WhyTarget(what.Target())
	switch {
	case verdict.Allowed && !answer.Allowed:
		answer.Allowed, answer.Reason = true, fmt.Sprintf("the network allows it: %s (%s)", verdict.Rule, verdict.Source)
		out.Rule, out.Verdict = api.RuleNetwork, audit.VerdictAllow
	case !verdict.Allowed && answer.Allowed:
		*answer = api.GrantCheckResult{Reason: verdict.Detail}
		out.Rule, out.Verdict = api.RuleNetwork, audit.VerdictDeny
	case !verdict.Allowed:
		answer.Reason += ", and " + verdict.Detail
	}
	return nil
}

// Shown are the rules of the network of the call's run that allow something, and then its grants,
// oldest first, as callers see them.
func (g Grants) Shown(c *service.Call) ([]api.Grant, error) {
	held, err := effective(c.Tx, c.Run.Spec.ID)
	if err != nil {
		return nil, err
	}
	rules, err := grant.Network(c.Run, nil, g.IsHost, c.Now)
	if err != nil {
		return nil, err
	}
	var all []api.Grant
	for i, r := range rules.Explain() {
		if !r.Deny {
			all = append(all, api.Grant{ID: ruleID + strconv.Itoa(i), Grant: string(grant.Net) + ":" + r.Rule, Holder: c.Run.Spec.ID, Giver: audit.PrincipalUser(c.Run.Owner.UID),
				Created: c.Run.Created, Rule: r.Source})
		}
	}
	for _, g := range held {
		all = append(all, shown(g))
	}
	return all, nil
}
