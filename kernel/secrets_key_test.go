package kernel

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/secrets"
)

// A secret of root's is the key of a provider: a call of a user's run with it is counted, with its run, up to the budget of uses, and its
// expiry ends it. A user's own secret of the name is none.
func TestModelKeys(t *testing.T) {
	t.Parallel()
	r := withSecrets(t, func(*api.SecretSetParams) {})
	use := api.SecretUseParams{Run: r.run.Spec.ID, Secret: "TOKEN", Host: "api.example.com:443", Method: "POST", Path: "/v1/chat/completions"}
	_, _, err := r.Kernel.Secrets.ModelKey("TOKEN")
	refusedBy(t, err, api.CodeNotFound, "a user's secret as a key")
	refusedBy(t, r.Kernel.Secrets.UseModelKey(r.run, use), api.CodeNotFound, "a use of a user's secret as a key")

	terms := secrets.Terms{Hosts: []string{"api.example.com"}, CA: "-----BEGIN CERTIFICATE-----"}
	_, err = asks[api.SecretResult](r, 0, methods.SecretSet.Name, api.SecretSetParams{Name: "TOKEN", Value: "the-value-of-roots", Terms: terms, Uses: 2, Expires: time.Unix(r.clock.Load(), 0).Add(time.Hour)})
	must(t, err)
	one, value, err := r.Kernel.Secrets.ModelKey("TOKEN")
	if err != nil || value != "the-value-of-roots" || one.Terms.CA != terms.CA {
		t.Errorf("%+v, %q, %v", one, value, err)
	}
	must(t, r.Kernel.Secrets.UseModelKey(r.run, use))
	must(t, r.Kernel.Secrets.UseModelKey(agent.Run{}, api.SecretUseParams{Secret: "TOKEN", Host: use.Host, Method: use.Method, Path: use.Path}))
	refusedBy(t, r.Kernel.Secrets.UseModelKey(r.run, use), api.CodeBudget, "a third use")
	_, _, err = r.Kernel.Secrets.ModelKey("TOKEN")
	must(t, err) // for the last use
	listed, err := asks[api.SecretUsesResult](r, 0, methods.SecretUses.Name, api.SecretUsesParams{Name: "TOKEN"})
	if err != nil || len(listed.Uses) != 2 {
		t.Fatalf("%+v, %v", listed, err)
	}
	for _, u := range listed.Uses {
		if u.Run != "" && (u.Run != r.run.Spec.ID || u.Agent != "worker") || u.Path != use.Path {
			t.Errorf("%+v", u)
		}
	}
	of, err := asks[api.SecretListResult](r, 1000, methods.SecretList.Name, api.SecretListParams{})
	if err != nil || of.Secrets[0].Uses != 0 {
		t.Errorf("the user's own secret was counted: %+v, %v", of, err)
	}

	_, err = asks[api.SecretResult](r, 0, methods.SecretSet.Name, api.SecretSetParams{Name: "SHORT", Value: "the-value-of-roots", Terms: terms, Expires: time.Unix(r.clock.Load(), 0).Add(time.Hour)})
	must(t, err)
	_, _, err = r.Kernel.Secrets.ModelKey("SHORT")
	must(t, err)
	r.clock.Add(3600)
	_, _, err = r.Kernel.Secrets.ModelKey("SHORT")
	refusedBy(t, err, api.CodeDenied, "an expired key")
	use.Secret = "SHORT"
	refusedBy(t, r.Kernel.Secrets.UseModelKey(r.run, use), api.CodeDenied, "a use of an expired key")
}
