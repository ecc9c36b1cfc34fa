package config

import (
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"clove.run/clove/internal/document"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
)

// Provider is who answers calls.
type Provider struct {
	Name   string
	Family models.Family // empty for one of clove's own, which speaks all
	// URL is the base URL as the family's own client takes it, without a slash at its end;
	// empty for one of clove's own.
	URL string
	// Script is the file that one of clove's own answers from; empty: echo, or the script
	// that a run names.
	Script string
	// Key names the file in /etc/clove/secrets, or the systemd credential, that holds the
	// key, or is secretKey and the name of a secret of root's; empty: none is sent.
	Key string
	// Subscription is the row of the client whose token the key is; nil: the key is one of the
	// family's own.
	Subscription *models.Subscription
	Account      string // the id of the subscription's account; empty: none is sent
	// CA is a file with the certificates of the authorities that are believed for it; empty:
	// those of the host.
	CA       string
	Limits   Limits
	Timeouts Timeouts

	// Who may use it beside root. Ids, as a name can get another owner while cloved executes.
	everyone bool
	users    []uint32
	groups   []uint32
	budgets  map[uint32][]budget.Limit
	standard []budget.Limit // of users who are not in budgets
}

// Limits bound the calls of all agents together. 0: no limit.
type Limits struct {
	RequestsPerMinute int64 `json:"requests_per_minute"`
	TokensPerMinute   int64 `json:"tokens_per_minute"`
	Concurrency       int64 `json:"concurrency"` // calls at the same time
}

// Timeouts bound one call.
type Timeouts struct {
	First   time.Duration // from the request to the first token of the answer
	Between time.Duration // between two tokens
	Total   time.Duration
}

// defaultTimeouts allow for models that think for minutes before the first token, and for
// answers without streaming, whose first token is their last.
var defaultTimeouts = Timeouts{First: 5 * time.Minute, Between: 2 * time.Minute, Total: time.Hour}

// routes are the paths below a base URL. OpenAI's clients have the version in the base URL,
// Anthropic's do not.
var routes = map[models.Format]string{
	models.OpenAIChat:        "/chat/completions",
	models.OpenAIResponses:   "/responses",
	models.AnthropicMessages: "/v1/messages",
	models.AnthropicCount:    "/v1/messages/count_tokens",
}

// Own reports whether package scripted answers for p, without a network.
func (p *Provider) Own() bool { return p.URL == "" }

// Speaks reports whether p takes requests of a format. One of clove's own takes all.
func (p *Provider) Speaks(f models.Format) bool {
	return p.Own() || p.Family == f.Family() && (p.Subscription == nil || slices.Contains(p.Subscription.Formats, f))
}

// Endpoint returns the URL that takes requests of a format; empty if p does not speak it or
// is one of clove's own.
func (p *Provider) Endpoint(f models.Format) string {
	if p.Own() || !p.Speaks(f) {
		return ""
	}
	return p.URL + routes[f]
}

// secretKey begins a key that is a secret.
const secretKey = "secret:"

// Secret returns the name of the secret that is the key; false: it is none.
func (p *Provider) Secret() (name string, is bool) { return strings.CutPrefix(p.Key, secretKey) }

// Host returns the host of the URL, without its port.
func (p *Provider) Host() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return "" // it was checked
	}
	return u.Hostname()
}

// Allows reports whether a user may use p. Root may use all.
func (p *Provider) Allows(uid uint32, groups []uint32) bool {
	return uid == 0 || p.everyone || slices.Contains(p.users, uid) ||
		slices.ContainsFunc(groups, func(g uint32) bool { return slices.Contains(p.groups, g) })
}

// Budget returns what a user may spend at p; none: no limit.
func (p *Provider) Budget(uid uint32) []budget.Limit {
	if own, found := p.budgets[uid]; found {
		return slices.Clone(own)
	}
	return slices.Clone(p.standard)
}

func (c *Config) addProvider(name string, f providerFile, ids lookup) error {
	at := "providers." + name
	if c.Providers[name] != nil {
		return document.Wrong(at, "choose another name", "%s is a provider of clove's own", name)
	}
	p := &Provider{Name: name, Family: f.Family, Script: f.Script, Key: f.Key, CA: f.CA, Limits: f.Limits, Timeouts: defaultTimeouts}
	for _, err := range []error{checkName(at, name), p.checkKind(at, f), p.subscribe(at, f), checkLimits(at, f.Limits), p.setTimeouts(at, f.Timeouts), p.allow(at, f, ids)} {
		if err != nil {
			return err
		}
	}
	c.Providers[name] = p
	return p.setBudgets(document.Join(at, "budgets"), f.Budgets, ids)
}

// checkKind refuses what is neither a remote provider nor one of clove's own.
func (p *Provider) checkKind(at string, f providerFile) (err error) {
	if f.Script != "" {
		switch {
		case f.URL != "" || f.Family != "" || f.Key != "" || f.CA != "" || f.Plain || f.Subscription != "" || f.Account != "":
			return document.Wrong(at, "remove family, url, plain, key, subscription, account and ca", "a script answers without a network")
		case !path.IsAbs(f.Script):
			return document.Wrong(document.Join(at, "script"), "write the whole path", "%.256q is not an absolute path", f.Script)
		}
		return nil
	}
	if f.Family != models.OpenAI && f.Family != models.Anthropic {
		return document.Wrong(document.Join(at, "family"), "use openai or anthropic: most other servers speak openai", "%.64q is not the family of a provider", f.Family)
	}
	name, secret := p.Secret()
	switch {
	case f.Key != "" && !isFileName(name):
		return document.Wrong(document.Join(at, "key"), "write the name of a file in /etc/clove/secrets, or secret:NAME, not the key itself", "the key is not the name of a file or of a secret")
	case secret && f.Plain:
		return document.Wrong(document.Join(at, "key"), "name a file in /etc/clove/secrets", "plain: true sends the key without TLS, and a secret goes over TLS alone")
	case f.CA != "" && f.Plain:
		return document.Wrong(document.Join(at, "ca"), "remove one of them", "plain: true has no certificates")
	case f.CA != "" && !path.IsAbs(f.CA):
		return document.Wrong(document.Join(at, "ca"), "write the whole path", "%.256q is not an absolute path", f.CA)
	}
	p.URL, err = checkURL(document.Join(at, "url"), f.URL, f.Plain)
	return err
}

// subscribe sets what is known of a subscription's provider.
func (p *Provider) subscribe(at string, f providerFile) error {
	p.Subscription, p.Account = models.SubscriptionOf(f.Subscription), f.Account
	key := document.Join(at, "subscription")
	switch s := p.Subscription; {
	case f.Subscription == "" && f.Account == "":
		return nil
	case f.Subscription == "":
		return document.Wrong(document.Join(at, "account"), "write subscription: codex, or remove account", "there is no subscription whose account it is")
	case s == nil:
		var names []string
		for _, s := range models.Subscriptions {
			names = append(names, s.Client)
		}
		return document.Wrong(key, document.Meant(f.Subscription, names, "use "+strings.Join(names, " or ")), "%.64q is not a client whose subscription is known", f.Subscription)
	case s.Family != f.Family:
		return document.Wrong(key, "write family: "+string(s.Family), "the service of %s is of another family", s.Client)
	case f.Key == "":
		return document.Wrong(key, "write the token into a file in /etc/clove/secrets, and its name as key", "a subscription has a token")
	case f.Account != "" && (s.Account == "" || !isFileName(f.Account)):
		return document.Wrong(document.Join(at, "account"), "it is for codex: the id in tokens.account_id of ~/.codex/auth.json", "it is not the id of an account of %s", s.Client)
	}
	return nil
}

// checkURL returns a base URL in canonical form. Without TLS, a name could lead anywhere, so
// an address must say that the host is near.
func checkURL(at, text string, plain bool) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "":
		return "", document.Wrong(at, "write for example https://api.openai.com/v1", "it is not a URL with a host")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return "", document.Wrong(at, "use key for the key, and leave ? and # out", "it has more than a host and a path")
	case u.Scheme == "https" && plain:
		return "", document.Wrong(at, "remove plain: true", "it uses TLS")
	case u.Scheme != "https" && u.Scheme != "http":
		return "", document.Wrong(at, "use https", "%.64q is not a scheme of a provider", u.Scheme)
	case u.Scheme == "http" && !plain:
		return "", document.Wrong(at, "use https; for a server on a loopback or private address, add plain: true", "http sends key and contents in clear text")
	case u.Scheme == "http" && !isNear(u.Hostname()):
		return "", document.Wrong(at, "use https, or an address such as 127.0.0.1 or 10.0.0.5", "%.256q is neither a loopback nor a private address", u.Hostname())
	}
	u.Host = strings.ToLower(u.Host)
	return strings.TrimRight(u.String(), "/"), nil
}

// isNear reports whether a host is an address that no router of the internet forwards: loopback
// (RFC 1122, 4291) or private (RFC 1918, 4193). Link-local addresses are refused, since clouds
// have their metadata services there. Of names only localhost is accepted, which resolvers
// must answer by themselves (RFC 6761).
func isNear(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Zone() == "" && (a.IsLoopback() || a.IsPrivate())
}

func checkLimits(at string, l Limits) error {
	for _, row := range []struct {
		key   string
		value int64
	}{{"requests_per_minute", l.RequestsPerMinute}, {"tokens_per_minute", l.TokensPerMinute}, {"concurrency", l.Concurrency}} {
		if row.value < 0 {
			return document.Wrong(document.Join(at, "limits."+row.key), "0 is no limit", "%d is less than 0", row.value)
		}
	}
	return nil
}

func (p *Provider) setTimeouts(at string, f timeoutsFile) error {
	for _, row := range []struct {
		from Duration
		to   *time.Duration
	}{{f.First, &p.Timeouts.First}, {f.Between, &p.Timeouts.Between}, {f.Total, &p.Timeouts.Total}} {
		if row.from != 0 {
			*row.to = time.Duration(row.from)
		}
	}
	if t := p.Timeouts; t.First > t.Total || t.Between > t.Total {
		return document.Wrong(document.Join(at, "timeouts"), "raise total", "first (%s) or between (%s) is longer than total (%s)", t.First, t.Between, t.Total)
	}
	return nil
}
