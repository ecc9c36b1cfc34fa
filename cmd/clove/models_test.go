package main

import (
	"os"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

func someModels() []api.Model {
	return []api.Model{
		{Name: "coder", Formats: []string{"openai-chat", "openai-responses"}, Context: 200000, Targets: []api.ModelTarget{
			{Provider: "openai", Model: "gpt-6.2-sol", Weight: 3, Priced: true, Health: api.HealthOut}, {Provider: "openai", Model: "gpt-5.4-mini", Weight: 1, Priced: true, Health: api.HealthOK}, {Provider: "local", Model: "qwen3", Fallback: 1, Health: api.HealthOK}}},
		{Name: "gpt-4o", AliasOf: "small", Formats: []string{"openai-chat"}, MaxOut: 100, Priced: true, Targets: []api.ModelTarget{{Provider: "openai", Model: "theirs", Priced: true}}},
	}
}

func TestModelsList(t *testing.T) {
	b := newBench(t)
	b.cloved().answer(methods.ModelList.Name, api.ModelListResult{Models: someModels()})
	table := "NAME    ALIAS OF  PROVIDERS     FORMATS  CONTEXT  MAX OUTPUT  PRICE    HEALTH\n" +
		"coder             openai,local  openai   200000   -           unknown  out,ok\n" +
		"gpt-4o  small     openai        openai   -        100         known    -\n"
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{nil, table},
		{[]string{"-q"}, "coder\ngpt-4o\n"},
		{[]string{"--format", "{{.Name}}={{.Price}}"}, "coder=unknown\ngpt-4o=known\n"},
		{[]string{"--format", `table {{.Name}}\t{{.Health}}`}, "NAME    HEALTH\ncoder   out,ok\ngpt-4o  -\n"},
	} {
		if status, stdout, stderr := b.clove(append([]string{"models", "list"}, row.flags...)...); status != 0 || stdout != row.want {
			t.Errorf("%s: %d, %s, %s", row.flags, status, stderr, stdout)
		}
	}
	var models []api.Model
	_, stdout, _ := b.clove("models", "list", "--json")
	if unmarshal(t, stdout, &models); len(models) != 2 || models[0].Targets[2].Fallback != 1 {
		t.Errorf("%s", stdout)
	}
	for line, want := range map[string]string{"models": "clove models list", "models list x": "clove models list", "models prices -q": "does not take it",
		"models list --format {{.Nam}}": ".Name, .AliasOf", "models list -q --format {{.Name}}": "omit one of them"} {
		if status, _, stderr := b.clove(strings.Fields(line)...); status != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("%s: %d, %s", line, status, stderr)
		}
	}
}

func TestModelsPrices(t *testing.T) {
	b := newBench(t)
	b.cloved().answer(methods.ModelPrices.Name, api.ModelPricesResult{Prices: []api.ModelPrice{
		{Provider: "local", Model: "*", Date: "2026-11-23", Source: "ours"},
		{Family: "openai", Host: "api.openai.com", Model: "gpt-6-luna", ModelRates: api.ModelRates{In: 100, Cached: 10, CacheWrite: 125, CacheWriteLong: 250, Out: 500, Reasoning: 12000},
			Long: &api.ModelRates{In: 200, Cached: 20, CacheWrite: 250, CacheWriteLong: 250, Out: 750, Reasoning: 750}, LongAbove: 272000, Date: "2026-11-19", Source: "https://example.com", BuiltIn: true, Overridden: []string{"a", "b"}},
	}})
	status, stdout, stderr := b.clove("models", "prices")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	want := []string{"local 0 0 0 0 0 2026-11-23 ours", "api.openai.com 0.1 0.01 0.125/0.25 0.5 12 2026-11-19 a,b https://example.com", "api.openai.com 0.2 0.02 0.25 0.75 0.75 272000 2026-11-19 a,b https://example.com"}
	if status != 0 || len(lines) != 4 {
		t.Fatalf("%d, %s, %s", status, stderr, stdout)
	}
	for i, line := range lines[1:] {
		if got := strings.Join(strings.Fields(line)[1:], " "); got != want[i] {
			t.Errorf("%s, want %s", got, want[i])
		}
	}
}

// Without cloved, root reads models.yaml, and no other user does.
func TestModelsWithoutCloved(t *testing.T) {
	b := newBench(t)
	t.Setenv("CLOVE_MODELS", b.file("models.yaml", `
providers: {local: {family: openai, url: "http://127.0.0.1:1/v1", plain: true}}
models: {mine: {targets: [{provider: local, model: theirs}]}}
prices: [{provider: local, model: "*", in: 1500, out: 0, date: 2026-11-23, source: ours}]
`, 0o600))
	status, stdout, stderr := b.clove("models", "list", "-q")
	if os.Geteuid() != 0 {
		if status != exitFailed || !strings.Contains(stderr, "cloved does not run") {
			t.Errorf("%d, %s", status, stderr)
		}
		return
	}
	if status != 0 || stdout != "echo\nmine\nscripted\n" {
		t.Errorf("%d, %s, %q", status, stderr, stdout)
	}
	if _, stdout, stderr = b.clove("models", "list", "--format", "{{.Name}} {{.Health}}"); stdout != "echo -\nmine -\nscripted -\n" { // no run has called them
		t.Errorf("%s, %q", stderr, stdout)
	}
	if status, stdout, stderr = b.clove("models", "prices"); status != 0 || !strings.Contains(stdout, "local              1.5 ") || !strings.Contains(stdout, "claude-opus-5-5") {
		t.Errorf("%d, %s, %s", status, stderr, stdout)
	}
	t.Setenv("CLOVE_MODELS", b.file("wrong.yaml", "models: {mine: {targets: []}}", 0o600))
	if status, _, stderr = b.clove("models", "list"); status != exitFailed || !strings.Contains(stderr, "models.mine") {
		t.Errorf("%d, %s", status, stderr)
	}
}

func TestModelsTest(t *testing.T) {
	b := newBench(t)
	cost := int64(34)
	f := b.cloved()
	f.answer(methods.ModelTest.Name, api.ModelTestResult{Model: "small", Provider: "openai", Target: "gpt-5.4-mini", Format: "openai-chat", Status: 200, FirstNS: 312_456_789, TotalNS: 1_850_000_000,
		TokensIn: 12, TokensOut: 5, Reported: true, CostMicros: &cost})
	status, stdout, stderr := b.clove("models", "test", "tiny")
	var asked api.ModelTestParams
	f.heard(methods.ModelTest.Name, &asked)
	want := "MODEL  PROVIDER  AS            FORMAT       FIRST TOKEN  TOTAL  IN  CACHED  OUT  COST\n" +
		"small  openai    gpt-5.4-mini  openai-chat  312ms        1.85s  12  0       5    $0.000034\n"
	if status != 0 || stdout != want || asked.Model != "tiny" {
		t.Errorf("%d, %s, %s, %+v", status, stderr, stdout, asked)
	}
	f.answer(methods.ModelTest.Name, api.ModelTestResult{Model: "small", Provider: "local", Target: "qwen3", Format: "openai-chat", Status: 200, TokensIn: 12, TokensOut: 5})
	if status, stdout, stderr = b.clove("models", "test", "small"); status != 0 || !strings.HasSuffix(stdout, "5    -\n") || !strings.Contains(stderr, "estimated") {
		t.Errorf("%d, %s, %s", status, stderr, stdout)
	}
	f.answer(methods.ModelTest.Name, api.ModelTestResult{Model: "small", Provider: "openai", Status: 401, Failure: &api.ModelFailure{Reason: api.FailedKey, Message: "it answers with status 401", Hint: "write the right key"}})
	for _, line := range []string{"models test small", "models test --json small"} {
		status, stdout, stderr = b.clove(strings.Fields(line)...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, "it answers with status 401") || !strings.Contains(stderr, "write the right key") {
			t.Errorf("%s: %d, %s, %s", line, status, stderr, stdout)
		}
	}
	for _, line := range []string{"models test", "models test a b", "models test -q a"} {
		if status, _, _ := b.clove(strings.Fields(line)...); status != exitFailed {
			t.Errorf("%s: %d", line, status)
		}
	}
}

func TestModelsTop(t *testing.T) {
	b := newBench(t)
	b.cloved().answer(methods.ModelTop.Name, api.ModelTopResult{Runs: []api.ModelRun{
		{ID: "1", Name: "worker", Owner: 1000, Namespace: "acme", Models: []string{"coder", "small"}, InFlight: 2, Waiting: 7, Calls: 30, TokensIn: 1200, TokensOut: 300, CostMicros: 1_250_000}}})
	status, stdout, stderr := b.clove("models", "top")
	want := "AGENT   OWNER  NAMESPACE  MODELS       IN FLIGHT  WAITING  CALLS  IN    OUT  COST\n" +
		"worker  1000   acme       coder,small  2          7        30     1200  300  $1.25\n"
	if status != 0 || stdout != want {
		t.Errorf("%d, %s, %s", status, stderr, stdout)
	}
	var runs []api.ModelRun
	_, stdout, _ = b.clove("models", "top", "--json")
	if unmarshal(t, stdout, &runs); len(runs) != 1 || runs[0].Waiting != 7 {
		t.Errorf("%s", stdout)
	}
	b.daemon = nil
	if status, _, stderr = b.clove("models", "top"); status != exitFailed || !strings.Contains(stderr, "cloved does not run") {
		t.Errorf("%d, %s", status, stderr)
	}
}
