package kernel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/service"
	"clove.run/clove/secrets"
	"clove.run/clove/secrets/sealed"
	"clove.run/clove/secrets/sshkey"
)

const secretValue = "ghp_a-value-of-the-kernels-tests"

// withSecrets is a rig whose user 1000 has the secret TOKEN, and whose run was started with it.
func withSecrets(t *testing.T, change func(*api.SecretSetParams)) *rig {
	t.Helper()
	return withSecretsOf(t, agent.Kernel{Secrets: []string{"TOKEN:env=T"}}, nil, change)
}

// withSecretsOf is withSecrets for a run that has more, of agents that carry taints.
func withSecretsOf(t *testing.T, has agent.Kernel, taints service.Taints, change func(*api.SecretSetParams)) *rig {
	t.Helper()
	run := newRun(1000, has)
	run.Spec.Network = agent.NetworkAllowlist
	r := &rig{taints: taints, t: t, dir: t.TempDir(), run: run, manifests: &sync.Map{}, runs: &sync.Map{}, keys: sshKeeper{sealed.NewKeeper(filepath.Join(t.TempDir(), "key"))}}
	r.clock.Store(1_800_000_000)
	r.open()
	p := api.SecretSetParams{Name: "TOKEN", Value: secretValue, Terms: secrets.Terms{Hosts: []string{"api.example.com"}}}
	change(&p)
	_, err := asks[api.SecretResult](r, 1000, methods.SecretSet.Name, p)
	must(t, err)
	r.attach(true)
	return r
}

// sshKeeper reads keys, as cloved does.
type sshKeeper struct{ *sealed.Keeper }

func (sshKeeper) CheckSSH(value []byte) error {
	_, err := sshkey.Read(value)
	return err
}

func (r *rig) useSecret(name string) (api.SecretUseResult, error) {
	return asks[api.SecretUseResult](r, 0, methods.SecretUse.Name, api.SecretUseParams{Run: r.run.Spec.ID, Secret: name, Host: "api.example.com:443", Method: "GET", Path: "/repos"})
}

// refusedBy compares the code of a refusal, and that it has nothing of the value.
func refusedBy(t *testing.T, err error, code api.Code, about string) {
	t.Helper()
	if err == nil || api.ErrorOf(err).Code != code || strings.Contains(err.Error(), secretValue) {
		t.Errorf("%s: %v", about, err)
	}
}

// Each use is counted and kept with its request, and is in the audit log; the value is in nothing that is answered or stored.
func TestSecretsAreCounted(t *testing.T) {
	t.Parallel()
	r := withSecrets(t, func(p *api.SecretSetParams) { p.Uses = 2 })
	for range 2 {
		if result, err := r.useSecret("TOKEN"); err != nil || result.Version != 1 {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	_, err := r.useSecret("TOKEN")
	refusedBy(t, err, api.CodeBudget, "a third use")
	uses, err := asks[api.SecretUsesResult](r, 1000, methods.SecretUses.Name, api.SecretUsesParams{Name: "TOKEN"})
	if err != nil || len(uses.Uses) != 2 || uses.Uses[0].Run != r.run.Spec.ID || uses.Uses[0].Path != "/repos" || uses.Uses[0].Agent != "worker" {
		t.Errorf("%+v, %v", uses, err)
	}
	listed, err := asks[api.SecretListResult](r, 1000, methods.SecretList.Name, api.SecretListParams{})
	if err != nil || len(listed.Secrets) != 1 || listed.Secrets[0].Uses != 2 || listed.Secrets[0].Last == nil || !slices.Equal(listed.Secrets[0].Terms.Hosts, []string{"api.example.com:443"}) {
		t.Errorf("%+v, %v", listed, err)
	}
	checked, err := asks[api.SecretCheckResult](r, 1000, methods.SecretCheck.Name, api.Nothing{})
	if err != nil || checked.Checked != 1 || len(checked.Problems) != 1 || !strings.Contains(checked.Problems[0], "used up") {
		t.Errorf("%+v, %v", checked, err)
	}
	allowed := slices.DeleteFunc(r.entries(), func(e audit.Entry) bool { return e.Method != methods.SecretUse.Name || e.Verdict != audit.VerdictAllow })
	if len(allowed) != 2 || allowed[0].Run != r.run.Spec.ID || allowed[0].Agent != "worker" || allowed[0].Owner != 1000 || allowed[0].Rule == "" || allowed[0].What != `"TOKEN" "api.example.com:443" "GET" "/repos"` {
		t.Errorf("%+v", allowed)
	}
	r.close()
	log := ""
	must(t, filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), secretValue) {
			t.Errorf("the value is in %s", path)
		}
		if strings.Contains(path, "audit") {
			log += string(text)
		}
		return err
	}))
	if strings.Count(log, "secret.use") < 3 || !strings.Contains(log, "api.example.com:443") {
		t.Errorf("control: the audit log has no uses: %.2000s", log)
	}
}

// A secret is its user's own: others neither see, use, change nor remove it, and a run has those that it was started with. The control
// is the owner.
func TestSecretsAreTheirUsers(t *testing.T) {
	t.Parallel()
	r := withSecrets(t, func(*api.SecretSetParams) {})
	for uid, want := range map[uint32]int{1000: 1, 1001: 0, 0: 0} {
		listed, err := asks[api.SecretListResult](r, uid, methods.SecretList.Name, api.SecretListParams{})
		if err != nil || len(listed.Secrets) != want {
			t.Errorf("user %d: %+v, %v", uid, listed, err)
		}
	}
	if all, err := asks[api.SecretListResult](r, 0, methods.SecretList.Name, api.SecretListParams{All: true}); err != nil || len(all.Secrets) != 1 {
		t.Errorf("root: %+v, %v", all, err)
	}
	_, err := asks[api.SecretListResult](r, 1001, methods.SecretList.Name, api.SecretListParams{All: true})
	refusedBy(t, err, api.CodeDenied, "another's list of all")
	_, err = asks[api.SecretResult](r, 1001, methods.SecretRotate.Name, api.SecretRotateParams{Name: "TOKEN", Value: "another-value"})
	refusedBy(t, err, api.CodeNotFound, "another's rotation")
	_, err = asks[api.Nothing](r, 1001, methods.SecretRemove.Name, api.SecretNameParams{Name: "TOKEN"})
	refusedBy(t, err, api.CodeNotFound, "another's removal")
	_, err = asks[api.SecretUsesResult](r, 1001, methods.SecretUses.Name, api.SecretUsesParams{Name: "TOKEN"})
	refusedBy(t, err, api.CodeNotFound, "another's uses")
	_, err = asks[api.SecretResult](r, 1000, methods.SecretSet.Name, api.SecretSetParams{Name: "OTHER", Value: secretValue, Terms: secrets.Terms{Hosts: []string{"api.example.com"}}})
	must(t, err)
	_, err = r.useSecret("OTHER")
	refusedBy(t, err, api.CodeDenied, "a secret that the run was not started with")
	_, err = r.useSecret("TOKEN")
	must(t, err)
}

// Another value has another version, and a secret that has expired or is gone is refused, also to a run that is started with it.
func TestSecretsChange(t *testing.T) {
	t.Parallel()
	r := withSecrets(t, func(p *api.SecretSetParams) { p.Expires = time.Unix(1_800_000_000, 0).Add(time.Hour) })
	if _, values, err := r.Secrets.Of(r.run, false); err != nil || values["TOKEN"] != secretValue {
		t.Errorf("control: %v", err)
	}
	_, err := asks[api.SecretResult](r, 1000, methods.SecretRotate.Name, api.SecretRotateParams{Name: "TOKEN", Value: "another-value"})
	must(t, err)
	if result, err := r.useSecret("TOKEN"); err != nil || result.Version != 2 {
		t.Errorf("%+v, %v", result, err)
	}
	if _, values, err := r.Secrets.Of(r.run, false); err != nil || values["TOKEN"] != "another-value" {
		t.Errorf("%v", err)
	}
	r.clock.Add(3600)
	_, err = r.useSecret("TOKEN")
	refusedBy(t, err, api.CodeDenied, "an expired secret")
	_, _, err = r.Secrets.Of(r.run, false)
	refusedBy(t, err, api.CodeDenied, "a start with an expired secret")
	_, err = asks[api.Nothing](r, 1000, methods.SecretRemove.Name, api.SecretNameParams{Name: "TOKEN"})
	must(t, err)
	_, err = r.useSecret("TOKEN")
	refusedBy(t, err, api.CodeNotFound, "a removed secret")
}

// What could not be used is refused, and nothing is kept.
func TestSecretsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := withSecrets(t, func(*api.SecretSetParams) {})
	sound := func(change func(*api.SecretSetParams)) api.SecretSetParams {
		p := api.SecretSetParams{Name: "NEW", Value: secretValue, Terms: secrets.Terms{Hosts: []string{"api.example.com"}}}
		change(&p)
		return p
	}
	for about, row := range map[string]struct {
		p    api.SecretSetParams
		code api.Code
	}{
		"a name":    {sound(func(p *api.SecretSetParams) { p.Name = "a b" }), api.CodeParams},
		"no host":   {sound(func(p *api.SecretSetParams) { p.Terms.Hosts = nil }), api.CodeParams},
		"a short":   {sound(func(p *api.SecretSetParams) { p.Value = "short" }), api.CodeParams},
		"two lines": {sound(func(p *api.SecretSetParams) { p.Value = secretValue + "\n" + secretValue }), api.CodeParams},
		"an end":    {sound(func(p *api.SecretSetParams) { p.Expires = time.Unix(1, 0) }), api.CodeParams},
		"uses":      {sound(func(p *api.SecretSetParams) { p.Uses = -1 }), api.CodeParams},
		"a CA":      {sound(func(p *api.SecretSetParams) { p.Terms.CA = "-----BEGIN CERTIFICATE-----" }), api.CodeDenied},
		"an ssh key that is none": {sound(func(p *api.SecretSetParams) {
			p.Terms.Hosts = []string{"api.example.com:22"}
			p.Terms.SSH = &secrets.SSH{HostKeys: []string{"api.example.com:22 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA"}}
		}), api.CodeParams},
		"twice": {sound(func(p *api.SecretSetParams) { p.Name = "TOKEN" }), api.CodeConflict},
	} {
		_, err := asks[api.SecretResult](r, 1000, methods.SecretSet.Name, row.p)
		refusedBy(t, err, row.code, about)
	}
	if listed, err := asks[api.SecretListResult](r, 1000, methods.SecretList.Name, api.SecretListParams{}); err != nil || len(listed.Secrets) != 1 {
		t.Errorf("%+v, %v", listed, err)
	}
}

// A run's supervisor gets the values that the agent reads apart from the others, and only of secrets that allow it. The control is a secret
// that does not.
func TestSecretsThatAreRead(t *testing.T) {
	t.Parallel()
	r := withSecrets(t, func(p *api.SecretSetParams) { p.Terms.Plain = true })
	if all, values, err := r.Secrets.Of(r.run, true); err != nil || len(all) != 0 || len(values) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
	both := r.run
	both.Spec.Kernel.Secrets = []string{"TOKEN:plain", "OTHER:env=T"}
	_, err := asks[api.SecretResult](r, 1000, methods.SecretSet.Name, api.SecretSetParams{Name: "OTHER", Value: "another-value", Terms: secrets.Terms{Hosts: []string{"api.example.com"}}})
	must(t, err)
	if _, values, err := r.Secrets.Of(both, true); err != nil || len(values) != 1 || values["TOKEN"] != secretValue {
		t.Errorf("%d, %v", len(values), err)
	}
	if _, values, err := r.Secrets.Of(both, false); err != nil || len(values) != 1 || values["OTHER"] != "another-value" {
		t.Errorf("%d, %v", len(values), err)
	}
	both.Spec.Kernel.Secrets = []string{"OTHER:plain"}
	_, _, err = r.Secrets.Of(both, true)
	refusedBy(t, err, api.CodeDenied, "a secret that is not to be read")
}
