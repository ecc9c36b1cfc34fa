package kernel

import (
	"fmt"
	"strconv"
	"strings"

	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/grant"
)

// ruleID begins the id of a rule of the run's network among its grants. No grant has such an id.
const ruleID = "rule:"

// checkNet answers grant.check about the network as the gate would: a deny rule beats a grant, and a
// rule allows without one.
func (c *call) checkNet(what grant.Scope, held []grant.Grant, answer *api.GrantCheckResult) error {
	rules, err := grant.Network(c.Run, held, c.kernel.config.IsHost, c.now)
	if err != nil || !what.Concrete() {
		return err
	}
	verdict := rules.WhyTarget(what.Target())
	switch {
	case verdict.Allowed && !answer.Allowed:
		answer.Allowed, answer.Reason = true, fmt.Sprintf("the network allows it: %s (%s)", verdict.Rule, verdict.Source)
		c.rule, c.verdict = api.RuleNetwork, audit.VerdictAllow
	case !verdict.Allowed && answer.Allowed:
		*answer = api.GrantCheckResult{Reason: verdict.Detail}
		c.rule, c.verdict = api.RuleNetwork, audit.VerdictDeny
	case !verdict.Allowed:
		answer.Reason += ", and " + verdict.Detail
	}
	return nil
}

// shownAll are the rules of the network that allow something, and then the grants, as callers see
// them.
func (c *call) shownAll(held []grant.Grant) ([]api.Grant, error) {
	rules, err := grant.Network(c.Run, nil, c.kernel.config.IsHost, c.now)
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

// notARule refuses the id of a rule of the network where a grant is needed.
func notARule(id string) error {
	if !strings.HasPrefix(id, ruleID) {
		return nil
	}
	return api.Failure(api.CodeNotFound, "clove update changes the network of a run; clove grant give makes a grant", "%.64q is a rule of the run's network and no grant", id)
}
