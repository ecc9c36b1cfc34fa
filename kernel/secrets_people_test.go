package kernel

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/service"
)

// A run uses a secret by a grant that it begins with, which can be revoked, and given again for a number of uses.
func TestASecretNeedsAGrant(t *testing.T) {
	t.Parallel()
	r := withSecrets(t, func(*api.SecretSetParams) {})
	_, err := r.useSecret("TOKEN")
	must(t, err)
	held := answerOf[api.GrantListResult](t)(r.asUser(1000, agents.GrantList.Name, api.GrantListParams{}))
	if len(held.Grants) != 1 || held.Grants[0].Grant != "secret:TOKEN" {
		t.Fatalf("%+v", held)
	}
	_, err = r.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: held.Grants[0].ID})
	must(t, err)
	_, err = r.useSecret("TOKEN")
	refusedBy(t, err, api.CodeDenied, "a use without a grant")
	uses := int64(1)
	_, err = r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "secret:TOKEN", Uses: &uses})
	must(t, err)
	_, err = r.useSecret("TOKEN")
	must(t, err)
	_, err = r.useSecret("TOKEN")
	refusedBy(t, err, api.CodeDenied, "a second use of a grant for one")
}

// asksUse asks people about a use, as the run's supervisor does.
func (r *rig) asksUse(path string) (api.Approval, error) {
	use := api.SecretUseParams{Run: r.run.Spec.ID, Secret: "TOKEN", Host: "api.example.com:443", Method: "GET", Path: path}
	result, err := asks[api.ApprovalResult](r, 0, methods.ApprovalAsk.Name, api.ApprovalAskParams{Run: r.run.Spec.ID, Kind: api.ApproveSecret, Secret: &use})
	return result.Approval, err
}

func (r *rig) usePath(path string) error {
	_, err := asks[api.SecretUseResult](r, 0, methods.SecretUse.Name, api.SecretUseParams{Run: r.run.Spec.ID, Secret: "TOKEN", Host: "api.example.com:443", Method: "GET", Path: path})
	return err
}

// Where people are asked, a use needs their yes, which is for this method, host and path, and of which one for one time is used up
// with the use. The control is a use that a grant covers: it is not asked.
func TestPeopleAreAskedAboutUses(t *testing.T) {
	t.Parallel()
	r := withSecretsOf(t, agent.Kernel{Secrets: []string{"TOKEN:env=T"}, Asks: []string{agent.AskSecret}}, nil, func(p *api.SecretSetParams) { p.Uses = 5 })
	refusedBy(t, r.usePath("/a"), api.CodeConflict, "a use before people were asked")
	asked, err := r.asksUse("/a")
	if err != nil || asked.What != "use the secret TOKEN: GET https://api.example.com/a" || asked.Rule != "secret:TOKEN" {
		t.Fatalf("%+v, %v", asked, err)
	}
	refusedBy(t, r.usePath("/a"), api.CodeConflict, "a use before the answer")
	once := yes(asked)
	once.Once = true
	_, err = r.responds(1000, once)
	must(t, err)
	refusedBy(t, r.usePath("/b"), api.CodeConflict, "a use of another path")
	must(t, r.usePath("/a"))
	refusedBy(t, r.usePath("/a"), api.CodeConflict, "a second use of a yes for one")
	asked, err = r.asksUse("/a")
	must(t, err)
	_, err = r.responds(1000, yes(asked))
	must(t, err)
	must(t, r.usePath("/a"))
	must(t, r.usePath("/a"))
	asked, err = r.asksUse("/b")
	must(t, err)
	_, err = r.responds(1000, api.ApprovalRespondParams{ID: asked.ID, Digest: asked.Digest, Reason: "not b"})
	must(t, err)
	err = r.usePath("/b")
	if refusedBy(t, err, api.CodeDenied, "what people refused"); !strings.Contains(err.Error(), "not b") {
		t.Error(err)
	}
	for about, path := range map[string]string{"a long path": "/" + strings.Repeat("x", 512), "a path that is not in ASCII": "/?"} {
		_, err = r.asksUse(path)
		refusedBy(t, err, api.CodeDenied, about)
	}
	_, err = r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "secret:TOKEN"})
	must(t, err)
	must(t, r.usePath("/c"))
	must(t, r.usePath("/c"))
	_, err = r.asksUse("/d") // nothing of it is left
	refusedBy(t, err, api.CodeBudget, "a question about a secret that is used up")
}

// carries are the taints of agents of the tests.
type carries []string

func (c carries) Carried(*service.Call) ([]string, error) { return c, nil }

// An agent that carries a taint which a secret avoids does not use it. The control is a secret that avoids another; where taints are
// not kept, a secret that avoids one cannot be set.
func TestSecretsAvoidTaints(t *testing.T) {
	t.Parallel()
	run := agent.Kernel{Secrets: []string{"TOKEN:env=T"}}
	r := withSecretsOf(t, run, carries{"web"}, func(p *api.SecretSetParams) { p.Terms.Avoid = []string{"mail", "web"} })
	refusedBy(t, r.usePath("/"), api.CodeDenied, "a use by an agent that carries the taint")
	r = withSecretsOf(t, run, carries{"web"}, func(p *api.SecretSetParams) { p.Terms.Avoid = []string{"mail"} })
	must(t, r.usePath("/"))
	r = withSecrets(t, func(*api.SecretSetParams) {})
	p := api.SecretSetParams{Name: "OTHER", Value: secretValue}
	p.Terms.Hosts, p.Terms.Avoid = []string{"api.example.com"}, []string{"web"}
	_, err := asks[api.SecretResult](r, 1000, methods.SecretSet.Name, p)
	refusedBy(t, err, api.CodeUnenforceable, "a secret that avoids what is not kept")
}
