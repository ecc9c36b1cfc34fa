package control

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/models/link"
	"clove.run/clove/secrets"
)

// keeper keeps one secret, and notes its uses.
type keeper struct {
	mu     sync.Mutex // guards the following
	terms  secrets.Terms
	value  string
	broken error
	uses   []api.SecretUseParams
}

func (k *keeper) ModelKey(name string) (api.Secret, string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name != "openai" || k.broken != nil {
		return api.Secret{}, "", k.broken
	}
	return api.Secret{Name: name, Terms: k.terms}, k.value, nil
}

func (k *keeper) UseModelKey(_ agent.Run, use api.SecretUseParams) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.uses = append(k.uses, use)
	return k.broken
}

// used are the uses so far.
func (k *keeper) used() []api.SecretUseParams {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.uses)
}

func (k *keeper) set(change func(*keeper)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change(k)
}

// secretKeys is a configuration of which one provider's key is a secret, and another's a file.
const secretKeys = `
providers:
  p: {family: openai, url: "https://p.example/v1", key: "secret:openai", users: ["*"]}
  q: {family: openai, url: "https://q.example/v1", key: file, users: ["*"]}
models:
  small: {targets: [{provider: p, model: theirs}]}
  free: {targets: [{provider: q, model: theirs}]}
`

func newKeeper(t *testing.T) (*rig, *keeper) {
	t.Helper()
	r, k := newRig(t), &keeper{value: "the value", terms: secrets.Terms{Hosts: []string{"p.example:443"}, Header: "Authorization", Allow: []string{"POST /v1/chat/**"}}}
	r.load(secretKeys)
	r.desk.upstreams.keys.secrets = k
	return r, k
}

// A provider's key that is a secret goes to clove-upstream, each call with it is decided first and counted, and another value is in the
// next call. The control is a key in a file: no secret is used for it.
func TestASecretIsAKey(t *testing.T) {
	t.Parallel()
	r, k := newKeeper(t)
	k.set(func(k *keeper) { k.terms.CA = "an authority" })
	run, front := r.started()
	for i, model := range []string{"small", "free"} {
		if m := front.begin(ask(uint64(i+1), run, model)); m.Go == nil {
			t.Fatalf("%s: %+v", model, m.Refuse)
		}
	}
	up := within(t, r.upstreams)
	if p := up.setup.Providers["p"]; p.Key != "the value" || string(p.Roots) != "an authority" || up.setup.Providers["q"].Key != "the key file" {
		t.Errorf("%+v", up.setup.Providers)
	}
	want := api.SecretUseParams{Run: run.Spec.ID, Secret: "openai", Host: "p.example:443", Method: "POST", Path: "/v1/chat/completions"}
	if used := k.used(); len(used) != 1 || used[0] != want {
		t.Errorf("%+v", k.used())
	}
	k.set(func(k *keeper) { k.value = "another" })
	if m := front.begin(ask(3, run, "small")); m.Go == nil {
		t.Fatalf("%+v", m.Refuse)
	}
	if p := within(t, r.upstreams).setup.Providers["p"]; p.Key != "another" {
		t.Errorf("%+v", p)
	}
}

// A secret whose terms do not fit the provider, or that cannot be used, refuses each call with it and each test, before anything is sent,
// and clove-upstream does not get it. The control is a call of the other provider.
func TestASecretThatIsNoKey(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		change func(*keeper)
		want   string
	}{
		{func(k *keeper) { k.terms.Hosts = []string{"q.example:443", "p.example:8443"} }, "the secret openai is not for p.example, the host of the provider p"},
		{func(k *keeper) { k.terms.Header = "X-Api-Key" }, "takes its key in Authorization"},
		{func(k *keeper) { k.terms.Allow = []string{"GET /v1/**"} }, "the secret openai is not for POST /v1/chat/completions"},
		{func(k *keeper) { k.broken = api.Failure(api.CodeDenied, "", "it expired at noon") }, "it expired at noon"},
		{func(k *keeper) { k.broken = api.Failure(api.CodeBudget, "", "its 2 uses are used up") }, "its 2 uses are used up"},
	} {
		r, k := newKeeper(t)
		k.set(row.change)
		run, front := r.started()
		if m := front.begin(ask(1, run, "small")); m.Refuse == nil || m.Refuse.Reason != link.ReasonFailed || !strings.Contains(m.Refuse.Message, row.want) || !strings.HasPrefix(m.Refuse.Message, "the key of the provider p cannot be used") {
			t.Errorf("%s: %+v, %+v", row.want, m.Go, m.Refuse)
		}
		if _, err := r.Test(context.Background(), "small"); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", row.want, err)
		}
		if m := front.begin(ask(2, run, "free")); m.Go == nil {
			t.Fatalf("%s: control: %+v", row.want, m.Refuse)
		}
		if p := within(t, r.upstreams).setup.Providers; p["p"].Key != "" && !strings.Contains(row.want, "POST") || p["q"].Key == "" {
			t.Errorf("%s: %+v", row.want, p)
		}
	}
}

// Without cloved a secret is no key.
func TestSecretsAreKeptByCloved(t *testing.T) {
	t.Parallel()
	r, _ := newKeeper(t)
	r.desk.upstreams.keys.secrets = nil
	run, front := r.started()
	if m := front.begin(ask(1, run, "small")); m.Refuse == nil || !strings.Contains(m.Refuse.Message, "cloved does not run") {
		t.Errorf("%+v, %+v", m.Go, m.Refuse)
	}
}
