package control

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/secrets"
)

// Secrets keeps secrets that are keys of providers. kernel.Secrets does.
type Secrets interface {
	// ModelKey returns a secret and its value, while it can be used.
	ModelKey(name string) (api.Secret, string, error)
	// UseModelKey decides and counts a call of a run's; one without an id is root's own.
	UseModelKey(run agent.Run, use api.SecretUseParams) error
}

// keys are those of providers.
type keys struct {
	file    func(name string) (string, error)
	secrets Secrets // nil: no provider's key is a secret
}

// of returns a provider's key, and in PEM form the authorities that the key's terms name; empty: none. A secret that cannot be used is no
// key: one that has expired takes nothing from other providers, and each call with it is refused (use).
func (k keys) of(p *config.Provider) (key, roots string, err error) {
	name, secret := p.Secret()
	switch {
	case p.Key == "":
		return "", "", nil
	case !secret:
		key, err = k.file(p.Key)
		return key, "", err
	}
	one, key, err := k.open(p, name)
	if err != nil {
		return "", "", nil
	}
	return key, one.Terms.CA, nil
}

// open returns the secret that is the key of p.
func (k keys) open(p *config.Provider, name string) (one api.Secret, key string, err error) {
	if k.secrets == nil {
		return one, "", api.Failure(api.CodeUnenforceable, agent.StartCloved(), "it is a secret, which cloved keeps, and cloved does not run")
	}
	if one, key, err = k.secrets.ModelKey(name); err == nil {
		err = fits(p, one)
	}
	return one, key, err
}

// fits refuses a secret whose terms p would break. Its server must be one that they name, as what is sent to it has the secret.
func fits(p *config.Provider, one api.Secret) error {
	host, header := hostOf(p), keyHeader(p)
	switch t := one.Terms; {
	case !slices.Contains(t.Hosts, host):
		return api.Failure(api.CodeDenied, "clove secret set --host "+secrets.ShortHost(host), "the secret %s is not for %s, the host of the provider %s", one.Name, secrets.ShortHost(host), p.Name)
	case t.Header != header:
		return api.Failure(api.CodeDenied, "clove secret set --header "+header, "the secret %s is for the header %s, and the provider %s takes its key in %s", one.Name, t.Header, p.Name, header)
	case t.CA != "" && p.CA != "":
		return api.Failure(api.CodeDenied, "remove ca of the provider in models.yaml", "the secret %s has authorities of its own, and so has the provider %s", one.Name, p.Name)
	}
	return nil
}

// hostOf is the host of a provider with its port, as terms have it.
func hostOf(p *config.Provider) string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "" // it was checked
	}
	name, port := secrets.SplitHost(u.Host)
	return name + ":" + port
}

// keyHeader is the header in which a provider gets its key (models/upstream).
func keyHeader(p *config.Provider) string {
	if p.Family == models.Anthropic && p.Subscription == nil {
		return "X-Api-Key"
	}
	return secrets.DefaultHeader
}

// use decides and counts a call of a run's by its provider, if the provider's key is a secret. A call for no run is root's own.
func (k keys) use(run agent.Run, p *config.Provider, f models.Format) error {
	name, secret := p.Secret()
	if !secret {
		return nil
	}
	one, _, err := k.open(p, name)
	if err != nil {
		return unusable(p, err)
	}
	u, err := url.Parse(p.Endpoint(f))
	if err != nil {
		return err
	}
	if path, err := secrets.Path(u.EscapedPath()); err != nil || !one.Terms.Permits("POST", path) {
		return unusable(p, api.Failure(api.CodeDenied, "clove secret list shows the requests that it is for", "the secret %s is not for POST %s", name, u.Path))
	}
	err = k.secrets.UseModelKey(run, api.SecretUseParams{Run: run.Spec.ID, Secret: name, Host: hostOf(p), Method: "POST", Path: u.Path})
	if err != nil {
		return unusable(p, err)
	}
	return nil
}

func unusable(p *config.Provider, err error) error {
	e := api.ErrorOf(err)
	return api.Failure(e.Code, e.Data.Hint, "the key of the provider %s cannot be used: %s", p.Name, e.Message)
}

// keysDigest tells keys apart without keeping them.
type keysDigest [sha256.Size]byte

func (k keys) digest(now *config.Config) (digest keysDigest, err error) {
	all := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(now.Providers)) {
		key, roots, err := k.of(now.Providers[name])
		if err != nil {
			return digest, err
		}
		fmt.Fprintf(all, "%q %q %q\n", name, key, roots)
	}
	all.Sum(digest[:0])
	return digest, nil
}
