package kernel

import (
	"clove.run/clove/kernel/grants"
	"fmt"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
)

// networked is a run with these rules; "-" before a target denies it.
func networked(mode string, has agent.Kernel, targets ...string) agent.Run {
	run := newRun(1000, has)
	run.Spec.Network = mode
	for _, target := range targets {
		rule := agent.EgressRule{Target: target, Source: "--allow"}
		if rest, deny := strings.CutPrefix(target, "-"); deny {
			rule = agent.EgressRule{Target: rest, Source: "--deny", Deny: true}
		}
		run.Spec.Egress.Rules = append(run.Spec.Egress.Rules, rule)
	}
	return run
}

// grant.check about the network answers as the gate decides: by the run's rules and mode, by its
// grants, and by what denies either. The audit log has the rule.
func TestACheckAnswersAsTheGateDoes(t *testing.T) {
	t.Parallel()
	r := newRigOf(t, networked(agent.NetworkNone, agent.Kernel{Socket: true}))
	check := func(what string) api.GrantCheckResult {
		return answerOf[api.GrantCheckResult](t)(r.asAgent(agents.GrantCheck.Name, api.GrantCheckParams{What: what}))
	}
	granted := agent.Kernel{Socket: true, Grants: []string{"net:api.example.com:443"}}
	for _, row := range []struct {
		run  agent.Run
		what string
		want string
	}{
		{networked(agent.NetworkAllowlist, agent.Kernel{Socket: true}, "api.example.com"), "net:api.example.com:443", "true the network allows it: api.example.com (--allow)"},
		{networked(agent.NetworkAllowlist, agent.Kernel{Socket: true}, "api.example.com"), "net:api.example.com", "true the network allows it: api.example.com (--allow)"},
		{networked(agent.NetworkAllowlist, agent.Kernel{Socket: true}, "api.example.com:443"), "net:api.example.com", "false there is no grant of kind net, and api.example.com is not allowed on tcp port 80"},
		{networked(agent.NetworkAllowlist, agent.Kernel{Socket: true}, "api.example.com"), "net:api.example.com:22", "false there is no grant of kind net, and api.example.com is not allowed on tcp port 22"},
		{networked(agent.NetworkAllowlist, agent.Kernel{Socket: true}, "api.example.com"), "net:www.example.com:443", "false there is no grant of kind net, and www.example.com is not allowed"},
		{networked(agent.NetworkAllowlist, agent.Kernel{Socket: true}, "10.1.0.0/16:5432"), "net:10.1.2.3:5432", "true the network allows it: 10.1.0.0/16:5432 (--allow)"},
		{networked(agent.NetworkPublic, agent.Kernel{Socket: true}), "net:api.example.com:443", "true the network allows it: tcp://public:* (mode public)"},
		{networked(agent.NetworkPublic, agent.Kernel{Socket: true}, "-api.example.com"), "net:api.example.com:443", "false there is no grant of kind net, and api.example.com is denied by"},
		{networked(agent.NetworkPublic, granted, "-*.example.com"), "net:api.example.com:443", "false api.example.com is denied by"},
		{networked(agent.NetworkPublic, agent.Kernel{Socket: true}), "net:10.1.2.3:443", "false there is no grant of kind net, and "},
		{networked(agent.NetworkNone, granted), "net:api.example.com:443", "true grant "},
		{networked(agent.NetworkNone, agent.Kernel{Socket: true}), "net:api.example.com:443", "false there is no grant of kind net, and "},
		{networked(agent.NetworkAllowlist, agent.Kernel{Socket: true}, "*.example.com"), "net:*.example.com:443", "false "},
		{networked(agent.NetworkPublic, agent.Kernel{Socket: true}), "tool:fetch", "false there is no grant of kind tool"},
	} {
		r.run = row.run
		r.attach(true)
		if got := check(row.what); !strings.HasPrefix(fmt.Sprint(got.Allowed, " ", got.Reason), row.want) {
			t.Errorf("%s of %s %v: %+v, want %q", row.what, row.run.Spec.Network, row.run.Spec.Egress.Rules, got, row.want)
		}
	}
	rules := map[string]int{}
	for _, e := range r.entries() {
		if e.Method == agents.GrantCheck.Name && e.Rule == api.RuleNetwork {
			rules[e.Verdict]++
		}
	}
	if rules[audit.VerdictAllow] != 4 || rules[audit.VerdictDeny] != 1 {
		t.Errorf("%v", rules)
	}
}

// grant.list and agent.get have the rules of the network beside the grants, in parts too; a rule is
// neither derived from nor revoked.
func TestAListHasTheRulesOfTheNetwork(t *testing.T) {
	t.Parallel()
	run := networked(agent.NetworkPublic, agent.Kernel{Grants: []string{"tool:fetch", "model:small"}}, "-evil.example", "10.1.2.3:5432")
	for i := range grants.InAnswer {
		run.Spec.Egress.Rules = append(run.Spec.Egress.Rules, agent.EgressRule{Target: fmt.Sprintf("n%d.example", i), Source: "policy research"})
	}
	r := newRigOf(t, run)
	got := map[string]string{}
	for p := (api.GrantListParams{}); ; {
		list := answerOf[api.GrantListResult](t)(r.asAgent(agents.GrantList.Name, p))
		for _, g := range list.Grants {
			if _, twice := got[g.Grant]; twice {
				t.Errorf("%s is there twice", g.Grant)
			}
			got[g.Grant] = g.Rule
		}
		if p.After = list.Next; p.After == "" {
			break
		}
	}
	want := map[string]string{"net:10.1.2.3:5432": "--allow", "net:n39.example": "policy research", "net:tcp://public:*": "mode public", "tool:fetch": "", "model:small": ""}
	for text, rule := range want {
		if is, there := got[text]; !there || is != rule {
			t.Errorf("%s: %q, %t", text, is, there)
		}
	}
	if len(got) != grants.InAnswer+4 {
		t.Errorf("%d: %v", len(got), got)
	}
	page := answerOf[api.AgentResult](t)(r.asAgent(agents.AgentGet.Name, api.Nothing{}))
	if len(page.Grants) != grants.InAnswer || page.Grants[0].Rule == "" {
		t.Errorf("%+v", page.Grants)
	}
	id := page.Grants[0].ID
	_, derived := r.asAgent(agents.GrantDerive.Name, api.GrantDeriveParams{From: id, Grant: page.Grants[0].Grant})
	_, revoked := r.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: id})
	for _, err := range []error{derived, revoked} {
		if wantCode(t, err, api.CodeNotFound); err != nil && !strings.Contains(err.Error(), "a rule of the run's network") {
			t.Error(err)
		}
	}
}
