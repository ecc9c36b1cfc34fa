package config

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// provider and target are the least that a file needs; a row adds one mistake.
const provider = "providers: {p: {family: openai, url: 'https://h/v1', %s}}"

// refused are files with one mistake each, what is said of it, and a part of the hint.
var refused = []struct{ text, message, hint string }{
	{"providrs: {}", `there is no key "providrs"`, "did you mean providers?"},
	{"Providers: {}", `there is no key "Providers"`, "did you mean providers?"},
	{"models: {}\nmodels: {}", `the key "models" stands in line 1 already`, "keep one"},
	{"models: {a: {targets: [{provider: echo, modle: x}]}}", `models.a.targets.0: there is no key "modle"`, "did you mean model?"},
	{"zzzzzz: 1", `there is no key "zzzzzz"`, "aliases, models, prices, providers"},
	{"[1]", "a list stands where a map of keys belongs", "docs/models.yaml"},
	{"models: {a: {factor: wide}}", "models.a.factor: text stands where a number belongs", "docs/models.yaml"},
	{"a: [", "", "indent with spaces"},

	{"providers: {echo: {script: /x}}", "providers.echo: echo is a provider of clove's own", "another name"},
	{"providers: {Open AI: {script: /x}}", `"Open AI" is not a name`, "lower-case"},
	{"providers: {p: {family: gemini, url: 'https://h'}}", `providers.p.family: "gemini" is not`, "openai or anthropic"},
	{"providers: {p: {family: openai}}", "providers.p.url: it is not a URL", "https://api.openai.com/v1"},
	{"providers: {p: {family: openai, url: 'https://u:k@h/v1'}}", "more than a host and a path", "use key"},
	{"providers: {p: {family: openai, url: 'https://h/v1?x'}}", "more than a host and a path", "use key"},
	{"providers: {p: {family: openai, url: 'https://h/v1#'}}", "more than a host and a path", "use key"},
	{"providers: {p: {family: openai, url: 'ftp://h/v1'}}", `"ftp" is not a scheme`, "https"},
	{"providers: {p: {family: openai, url: 'http://127.0.0.1/v1'}}", "clear text", "plain: true"},
	{"providers: {p: {family: openai, url: 'http://8.8.8.8/v1', plain: true}}", `"8.8.8.8" is neither`, "127.0.0.1"},
	{"providers: {p: {family: openai, url: 'http://ollama.lan/v1', plain: true}}", `"ollama.lan" is neither`, "10.0.0.5"},
	{"providers: {p: {family: openai, url: 'http://[fe80::1%25eth0]/v1', plain: true}}", "is neither", "https"},
	{"providers: {p: {family: openai, url: 'https://h/v1', plain: true}}", "it uses TLS", "remove plain"},
	{"providers: {p: {script: demo.yaml}}", "not an absolute path", "whole path"},
	{"providers: {p: {script: /demo.yaml, url: 'https://h'}}", "without a network", "remove family"},
	{"providers: {p: {script: /demo.yaml, ca: /ca.pem}}", "without a network", "and ca"},
	{"providers: {p: {family: openai, url: 'http://127.0.0.1', plain: true, ca: /ca.pem}}", "providers.p.ca: plain: true has no certificates", "remove one"},
	{with("ca: ca.pem"), "providers.p.ca: \"ca.pem\" is not an absolute path", "whole path"},
	{with("key: sk-ant/../x"), "providers.p.key: the key is not the name of a file", "not the key itself"},
	{with("key: 'secret:'"), "providers.p.key: the key is not the name of a file", "secret:NAME"},
	{with("key: 'secret:a/b'"), "providers.p.key: the key is not the name of a file", "secret:NAME"},
	{"providers: {p: {family: openai, url: 'http://127.0.0.1/v1', plain: true, key: 'secret:a'}}", "a secret goes over TLS alone", "name a file in /etc/clove/secrets"},
	{with("key: ..x"), "the key is not the name of a file", "/etc/clove/secrets"},
	{with("key: k, subscription: codx"), `providers.p.subscription: "codx" is not a client`, "did you mean codex?"},
	{with("key: k, subscription: zzzzzzz"), "is not a client", "claude-code or codex"},
	{with("key: k, subscription: claude-code"), "the service of claude-code is of another family", "family: anthropic"},
	{with("subscription: codex"), "providers.p.subscription: a subscription has a token", "its name as key"},
	{with("key: k, account: x"), "providers.p.account: there is no subscription", "subscription: codex"},
	{with("key: k, subscription: codex, account: 'x y'"), "providers.p.account: it is not the id of an account", "tokens.account_id"},
	{with(`key: k, subscription: codex, account: "x\r\ny"`), "it is not the id of an account", "tokens.account_id"},
	{"providers: {p: {family: anthropic, url: 'https://h', key: k, subscription: claude-code, account: x}}", "not the id of an account of claude-code", "for codex"},
	{"providers: {p: {script: /demo.yaml, subscription: codex}}", "without a network", "subscription"},
	{with("users: [alice]"), `providers.p.users.0: there is no user "alice"`, "exists here"},
	{with("users: [4294967295]"), "there is no user", "number"},
	{with("groups: ['']"), "providers.p.groups.0: there is no group", "number"},
	{with("users: [-1]"), "users", ""},
	{with("limits: {concurrency: -1}"), "providers.p.limits.concurrency: -1 is less than 0", "no limit"},
	{with("limits: {concurrncy: 1}"), `providers.p.limits: there is no key "concurrncy"`, "concurrency"},
	{with("timeouts: {first: 30}"), "30 is not a time", "90s"},
	{with("timeouts: {first: 0s}"), "0s\" is not a time", "90s"},
	{with("timeouts: {total: 1s}"), "is longer than total (1s)", "raise total"},
	{with("budgets: {'*': [wall_ms=1s]}"), "providers.p.budgets.*: calls of models use no wall_ms", "model_calls"},
	{with("budgets: {'*': [cost=1usd, cost=2usd]}"), "cost_micros is limited twice", "one limit"},
	{with("budgets: {'*': [cost]}"), `providers.p.budgets.*: "cost" is not a budget`, "DIMENSION=AMOUNT"},
	{with("budgets: {root: [], '0': []}"), "user 0 has a budget already", "once"},

	{"models: {echo: {targets: [{provider: echo}]}}", "models.echo: echo is a model of clove's own", "another name"},
	{"models: {'gpt*': {targets: [{provider: echo}]}}", `"gpt*" is not a name`, "lower-case"},
	{"models: {a//b: {targets: [{provider: echo}]}}", `"a//b" is not a name`, "lower-case"},
	{"models: {a: {}}", "a model has 1 to 16 targets", "targets: ["},
	{"models: {a: {targets: [{provider: ecco}]}}", `models.a.targets.0.provider: there is no provider "ecco"`, "did you mean echo?"},
	{"models: {a: {targets: [{provider: echo, model: 'x*'}]}}", `"x*" is not the name of a model`, "without *"},
	{"models: {a: {targets: [{provider: echo, weight: 1001}]}}", "weight: 1001 is out of range", "1000"},
	{"models: {a: {targets: [{provider: echo, fallback: -1}]}}", "fallback: -1 is out of range", "first"},
	{"models: {a: {targets: [{provider: echo}], factor: 0.9}}", "models.a.factor: 0.9 would", "1 to 10"},
	{"models: {a: {targets: [{provider: echo}], context: -1}}", "models.a.context: -1", "leave it out"},
	{"models: {a: {targets: [{provider: echo}], max_output: -1}}", "models.a.max_output: -1", "leave it out"},
	{"models: {a: {targets: [{provider: echo}], limits: {tokens_per_minute: -1}}}", "models.a.limits.tokens_per_minute", "no limit"},

	{"aliases: {a: ecco}", `aliases.a: there is no model "ecco"`, "did you mean echo?"},
	{"aliases: {echo: scripted}", "aliases.echo: echo is a model", "rename"},
	{"aliases: {a: b, b: echo}", "b is an alias itself", "stands for"},
	{"aliases: {A: echo}", `"A" is not a name`, "lower-case"},

	{price("in: 1, out: 1, provider: ecco"), `prices.0.provider: there is no provider "ecco"`, "did you mean echo?"},
	{price("in: 1, out: 1"), "of one provider or of one family", "provider: NAME"},
	{price("in: 1, out: 1, provider: echo, family: openai"), "of one provider or of one family", "provider: NAME"},
	{price("in: 1, out: 1, family: gemini"), `"gemini" is not the family`, "openai"},
	{price("in: 1, provider: echo"), "a price needs in and out", "2 dollars for a million are 2000"},
	{price("in: -1, out: 1, provider: echo"), "-1 is out of range", "nano-dollars"},
	{price("in: 1000000001, out: 1, provider: echo"), "out of range", "nano-dollars"},
	{price("in: 0.5, out: 1, provider: echo"), "the number 0.5 stands where a whole number belongs", ""},
	{price("in: 1, out: 1, provider: echo, long: {in: 1, out: 1}"), "prices.0.long.above: 0 is not", "input tokens"},
	{price("in: 1, out: 1, provider: echo, long: {above: 1, in: 1}"), "prices.0.long: a price needs in and out", ""},
	{price("in: 1, out: 1, provider: echo, tiers: {fast: 0.0005}"), "0.0005 is not a factor", "three decimals"},
	{price("in: 1, out: 1, provider: echo, tiers: {fast: -1}"), "-1 is not a factor", "0 to 100"},
	{"prices: [{provider: echo, model: '**', in: 1, out: 1, date: 2026-01-01, source: x}]", `prices.0.model: "**"`, `"*"`},
	{"prices: [{provider: echo, model: x, in: 1, out: 1, date: 2026-13-01, source: x}]", "has the date", "YYYY-MM-DD"},
	{"prices: [{provider: echo, model: x, in: 1, out: 1, date: 2026-12-01}]", "and where", "source: TEXT"},
}

func with(keys string) string { return strings.ReplaceAll(provider, "%s", keys) }

func price(keys string) string {
	return "prices: [{model: x, date: 2026-11-20, source: x, " + keys + "}]"
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	for _, row := range refused {
		_, err := Parse([]byte(row.text))
		if err == nil || !strings.Contains(err.Error(), row.message) || !strings.Contains(hintOf(err), row.hint) || hintOf(err) == "" {
			t.Errorf("%s\n\t%v\n\t%s", row.text, err, hintOf(err))
		}
		if err != nil && agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s: of kind %s", row.text, agent.KindOf(err))
		}
	}
}

// A key that was written in the place of its name does not reach a log.
func TestErrorsHoldNoKey(t *testing.T) {
	t.Parallel()
	const secret = "sk-proj+0123456789"
	for _, text := range []string{with("key: " + secret), "providers: {p: {family: openai, url: 'https://u:" + secret + "@h'}}"} {
		if _, err := Parse([]byte(text)); err == nil || strings.Contains(err.Error()+hintOf(err), secret) {
			t.Errorf("%v", err)
		}
	}
}
