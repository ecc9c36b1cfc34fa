package kernel

import (
	"context"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/secrets"
)

// Without cloved, a run of root's uses root's secrets in cloved's file: their budget of uses holds, a grant is needed, and while another
// process has the file every use is refused. The controls are the uses before.
func TestSecretsOfARunOfItsOwn(t *testing.T) {
	t.Parallel()
	r := withSecrets(t, func(*api.SecretSetParams) {})
	for _, name := range []string{"ROOTS", "KEY"} {
		_, err := asks[api.SecretResult](r, 0, methods.SecretSet.Name, api.SecretSetParams{Name: name, Value: "the-value-of-roots", Terms: secrets.Terms{Hosts: []string{"api.example.com"}}, Uses: 2})
		must(t, err)
	}
	r.close()
	dir := t.TempDir()
	own := &Own{Config: Config{CheckNet: checkNet, Secrets: r.keys}, Kept: filepath.Join(r.dir, "kernel.db"), Dir: func(id agent.ID) string { return filepath.Join(dir, string(id)) },
		Audit: func(agent.ID) string { return filepath.Join(dir, "audit") }}
	run := newRun(0, agent.Kernel{Secrets: []string{"ROOTS:env=T"}})
	run.Spec.Network = agent.NetworkAllowlist
	all, err := own.CheckSecrets(run.Spec)
	if err != nil || len(all) != 1 || all[0].Name != "ROOTS" {
		t.Errorf("%+v, %v", all, err)
	}
	missing := run.Spec
	missing.Kernel.Secrets = []string{"TOKEN:env=T"} // a user's
	_, err = own.CheckSecrets(missing)
	refusedBy(t, err, api.CodeNotFound, "a user's secret")

	must(t, own.Attach(context.Background(), run, func(api.Standing) {}))
	t.Cleanup(func() { must(t, own.Close()) })
	use := func(name string) error {
		_, err := own.UseSecret(context.Background(), api.SecretUseParams{Run: run.Spec.ID, Secret: name, Host: "api.example.com:443", Method: "GET", Path: "/"})
		return err
	}
	key := api.SecretUseParams{Run: run.Spec.ID, Secret: "KEY", Host: "api.example.com:443", Method: "POST", Path: "/v1/chat/completions"}
	must(t, use("ROOTS"))
	refusedBy(t, use("KEY"), api.CodeDenied, "a secret that the run was not started with")
	must(t, own.UseModelKey(run, key))
	if _, value, err := own.ModelKey("KEY"); err != nil || value != "the-value-of-roots" {
		t.Errorf("%q, %v", value, err)
	}

	r.open() // cloved starts
	refusedBy(t, use("ROOTS"), api.CodeBusy, "a use while cloved has the file")
	refusedBy(t, own.UseModelKey(run, key), api.CodeBusy, "a key while cloved has the file")
	listed, err := asks[api.SecretListResult](r, 0, methods.SecretList.Name, api.SecretListParams{})
	if err != nil || len(listed.Secrets) != 2 || listed.Secrets[0].Uses != 1 || listed.Secrets[1].Uses != 1 {
		t.Errorf("%+v, %v", listed, err)
	}
	r.close()

	must(t, use("ROOTS"))
	refusedBy(t, use("ROOTS"), api.CodeBudget, "a third use")
	must(t, own.UseModelKey(run, key))
	refusedBy(t, own.UseModelKey(run, key), api.CodeBudget, "a third call")
	decided := 0
	must(t, audit.Query(filepath.Join(dir, "audit"), audit.Filter{}, func(e audit.Entry) error {
		if e.Method == methods.SecretUse.Name {
			decided++
		}
		return nil
	}))
	if decided < 2 {
		t.Errorf("the log of the run has %d uses", decided)
	}
}
