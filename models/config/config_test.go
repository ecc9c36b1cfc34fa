package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
)

// example uses every key.
const example = `
providers:
  openai:
    family: openai
    url: https://API.openai.com/v1/
    key: openai
    users: [1000, "1001"]
    groups: [50]
    budgets: {"*": [cost=5usd/day], 1000: [cost=20usd/day, tokens=2M/day]}
    limits: {requests_per_minute: 500, tokens_per_minute: 200000, concurrency: 8}
    timeouts: {first: 30s, total: 10m}
  claude: {family: anthropic, url: "https://api.anthropic.com", key: anthropic.key}
  local: {family: openai, url: "http://127.0.0.1:8000/v1", plain: true, users: ["*"]}
  demo: {script: /etc/clove/demo.yaml, users: [root]}
models:
  coder:
    targets:
    - {provider: local, model: Qwen/Qwen3-8B, fallback: 1}
    - {provider: openai, model: gpt-5.4-mini, weight: 3}
    - {provider: openai, model: gpt-4.1, weight: 0}
    factor: 1.3
    context: 100000
    limits: {concurrency: 2}
  claude-opus-5-5:
    targets: [{provider: claude}]
aliases: {gpt-4o: coder}
prices:
- {provider: local, model: "Qwen/*", in: 10, out: 20, date: 2026-11-20, source: our own machine}
- {provider: demo, model: paid, in: 7, out: 7, date: 2026-11-20, source: a test}
- provider: openai
  model: gpt-4.1
  in: 100
  cached: 0
  cache_write: 120
  cache_write_long: 200
  out: 400
  reasoning: 500
  long: {above: 1000, in: 200, out: 800}
  tiers: {flex: 0.5, priority: 1.75}
  date: 2026-11-20
  source: a contract
`

func parsed(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%v (%s)", err, hintOf(err))
	}
	return c
}

func hintOf(err error) string {
	var known *agent.Error
	if errors.As(err, &known) {
		return known.Hint
	}
	return ""
}

func TestAllThatAFileSays(t *testing.T) {
	t.Parallel()
	c := parsed(t, example)
	p := c.Providers["openai"]
	if p.URL != "https://api.openai.com/v1" || p.Key != "openai" || p.Family != models.OpenAI || p.Limits != (Limits{500, 200000, 8}) {
		t.Errorf("%+v", p)
	}
	if p.Timeouts != (Timeouts{First: 30 * time.Second, Between: 2 * time.Minute, Total: 10 * time.Minute}) {
		t.Errorf("%+v", p.Timeouts)
	}
	targets, err := c.Resolve("gpt-4o", 0, nil)
	if err != nil || len(targets) != 3 {
		t.Fatalf("%v, %v", targets, err)
	}
	first, last := targets[0], targets[2]
	if first.Name != "coder" || first.Model != "gpt-5.4-mini" || first.Weight != 3 || first.Factor != 1.3 || first.Context != 100000 || first.MaxOutput != 128000 || first.Limits.Concurrency != 2 {
		t.Errorf("%+v", first)
	}
	if last.Provider.Name != "local" || last.Weight != 1 || last.Fallback != 1 || last.MaxOutput != 0 || last.Price == nil || last.Price.In != 10 {
		t.Errorf("%+v", last)
	}
	own := targets[1].Price
	want := Rates{In: 100, Cached: 0, CacheWrite: 120, CacheWriteLong: 200, Out: 400, Reasoning: 500}
	if targets[1].Weight != 0 || own.Rates != want || own.LongAbove != 1000 || *own.Long != (Rates{200, 200, 200, 200, 800, 800}) || own.Tiers["priority"] != 1750 {
		t.Errorf("%+v", own)
	}
}

func TestWhoMayUseWhat(t *testing.T) {
	t.Parallel()
	c := parsed(t, example)
	for _, row := range []struct {
		uid    uint32
		groups []uint32
		names  string
	}{
		{0, nil, "claude-opus-5-5 coder echo gpt-4o scripted"},
		{1000, nil, "coder echo gpt-4o scripted"},
		{7, []uint32{50}, "coder echo gpt-4o scripted"},
	} {
		if got := strings.Join(c.Names(row.uid, row.groups), " "); got != row.names {
			t.Errorf("%d: %s", row.uid, got)
		}
	}
	if targets, err := c.Resolve("coder", 7, []uint32{51}); err != nil || len(targets) != 1 || targets[0].Provider.Name != "local" {
		t.Errorf("a stranger got %+v, %v", targets, err)
	}
	var refused *NotAllowedError
	if _, err := c.Resolve("claude-opus-5-5", 1000, nil); !errors.As(err, &refused) || refused.UID != 1000 {
		t.Errorf("%v", err)
	}
	var unknown *UnknownModelError
	if _, err := c.Resolve("codr", 1000, nil); !errors.As(err, &unknown) || unknown.Nearest != "coder" {
		t.Errorf("%v", err)
	}
	// A user who may not use a model is not led to it.
	if _, err := c.Resolve("claude-opus-5-6", 1000, nil); !errors.As(err, &unknown) || unknown.Nearest != "" {
		t.Errorf("%v", err)
	}
	// A run is refused at its start, but for a pattern.
	for grants, want := range map[string]string{
		"model:coder": "", "model:codr*": "", "tool:codr": "", "tool:x model:codr": "did you mean coder?", "model:claude-opus-5-5": "may not use", "codr": "no kind",
	} {
		err := c.CheckGrants(strings.Fields(grants), 1000, nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", grants, err)
		}
	}
}

func TestBudgetsOfUsers(t *testing.T) {
	t.Parallel()
	p := parsed(t, example).Providers["openai"]
	own, other := p.Budget(1000), p.Budget(1001)
	if len(own) != 2 || own[0].Granted != 20_000_000 || own[0].Dimension != budget.CostMicros || own[1].Dimension != budget.Tokens || own[1].Period != budget.Day {
		t.Errorf("%+v", own)
	}
	if len(other) != 1 || other[0].Granted != 5_000_000 {
		t.Errorf("%+v", other)
	}
}

// Without a file, and with an empty one, there is what needs no key.
func TestBuiltIn(t *testing.T) {
	t.Parallel()
	missing, err := Load(filepath.Join(t.TempDir(), "models.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Config{missing, parsed(t, ""), parsed(t, "# nothing\n"), parsed(t, "models: {}\n")} {
		if got := c.Names(1000, nil); !slices.Equal(got, []string{"echo", "scripted"}) {
			t.Errorf("%q", got)
		}
		targets, err := c.Resolve(Echo, 1000, nil)
		if err != nil || len(targets) != 1 || targets[0].Price.Cost(models.Usage{In: 1e9, Out: 1e9}, "priority") != 0 {
			t.Errorf("%+v, %v", targets, err)
		}
		if p := targets[0].Provider; !p.Own() || !p.Speaks(models.AnthropicMessages) || p.Endpoint(models.OpenAIChat) != "" {
			t.Errorf("%+v", p)
		}
	}
}

func TestLoadLooksUsersUp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "models.yaml")
	text := "providers: {p: {family: openai, url: 'https://h/v1', users: [%s]}}\n"
	write := func(user string) {
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "%s", user)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("daemon") // Debian's user 1
	if c, err := Load(path); err != nil || !c.Providers["p"].Allows(1, nil) || c.Providers["p"].Allows(2, nil) {
		t.Errorf("%v", err)
	}
	write("no-such-user-here")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path+": providers.p.users.0: there is no user") {
		t.Errorf("%v", err)
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	c := parsed(t, example)
	for _, row := range []struct {
		provider string
		format   models.Format
		want     string
	}{
		{"openai", models.OpenAIChat, "https://api.openai.com/v1/chat/completions"},
		{"openai", models.OpenAIResponses, "https://api.openai.com/v1/responses"},
		{"openai", models.AnthropicMessages, ""},
		{"claude", models.AnthropicMessages, "https://api.anthropic.com/v1/messages"},
		{"claude", models.AnthropicCount, "https://api.anthropic.com/v1/messages/count_tokens"},
		{"demo", models.AnthropicMessages, ""},
	} {
		if got := c.Providers[row.provider].Endpoint(row.format); got != row.want {
			t.Errorf("%s %s: %s", row.provider, row.format, got)
		}
	}
}

// TestExampleShowsEveryKey: docs/models.yaml is a configuration, and holds each key.
func TestExampleShowsEveryKey(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/models.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c := parsed(t, string(text)); len(c.Providers) != 8 || c.Providers["claude"].Timeouts != c.Providers["openai"].Timeouts {
		t.Errorf("%d providers, %+v", len(c.Providers), c.Providers["openai"].Timeouts)
	}
	for key := range document.Keys(reflect.TypeFor[file]()) {
		if !strings.Contains(string(text), key+": ") && !strings.Contains(string(text), key+":\n") {
			t.Errorf("docs/models.yaml does not show %s", key)
		}
	}
}
