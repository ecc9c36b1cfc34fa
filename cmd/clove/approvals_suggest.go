package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/policies"
	"clove.run/clove/policies/advice"
)

// suggestion is a rule that would have covered what people have allowed.
type suggestion struct {
	Rule   string   `json:"rule" col:"RULE"` // as clove run --allow takes it
	Times  int      `json:"times" col:"TIMES"`
	Agents []string `json:"agents" col:"AGENTS"`
	Policy string   `json:"policy"` // what a document says
	Risk   string   `json:"risk" col:"RISK"`
}

// suggestRules lists the smallest rules: each is for a name and a port that was allowed, and none is wider.
func suggestRules() *call[api.ApprovalListParams, []suggestion] {
	return &call[api.ApprovalListParams, []suggestion]{ask: func(_ *screen, l *line, d *client.Client, params api.ApprovalListParams) ([]suggestion, error) {
		params.State = api.ApprovalAllowed
		all, err := client.Collect(client.All(l.Context.Context, d, methods.ApprovalList, params))
		return suggestions(all), err
	}}
}

func suggestions(all []api.Approval) []suggestion {
	byRule := map[string]*suggestion{}
	for _, a := range all {
		if a.Kind != api.ApproveNet || a.State != api.ApprovalAllowed || a.Rule == "" {
			continue
		}
		s := byRule[a.Rule]
		if s == nil {
			target := a.Rule
			if !strings.Contains(target, "://") {
				target = "tcp://" + target
			}
			given := advice.Of(policies.Standard(), agent.Denial{Kind: agent.DenialNetwork, Target: target})
			s = &suggestion{Rule: a.Rule, Policy: given.Policy, Risk: cmp.Or(given.Risk, given.Note)}
			byRule[a.Rule] = s
		}
		s.Times++
		if name := fmt.Sprintf("%d/%s", a.Owner, a.Agent); !slices.Contains(s.Agents, name) {
			s.Agents = append(s.Agents, name)
		}
	}
	list := []suggestion{}
	for _, s := range byRule {
		slices.Sort(s.Agents)
		list = append(list, *s)
	}
	slices.SortFunc(list, func(a, b suggestion) int { return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Rule, b.Rule)) })
	return list
}
