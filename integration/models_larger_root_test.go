//go:build root

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// pricedWords has a model of which 30000 tokens of output would cost 1.50usd. An answer costs
// 0.01502usd.
func pricedWords(t *testing.T) (file string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"script.yaml": "turns:\n- {text: \"word \", repeat: 400, usage: {in: 20, out: 300}}\n",
		"models.yaml": "providers:\n  demo: {script: " + dir + "/script.yaml}\nmodels:\n  words: {targets: [{provider: demo}]}\n" +
			"prices:\n- {provider: demo, model: \"*\", in: 1000, out: 50000, date: 2026-11-23, source: this test}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file = filepath.Join(dir, "models.yaml")
	t.Setenv("CLOVE_MODELS", file)
	return file
}

// asksFor asks by each format for so many tokens of output, as the provider counts them.
func asksFor(tokens int) []string {
	return modelAgent(
		fmt.Sprintf(`print(ask(base + "/v1/chat/completions", {"messages": said, "max_tokens": %d}, "words")[:3], flush=True)`, tokens),
		fmt.Sprintf(`print(ask(base + "/v1/chat/completions", {"messages": said, "max_completion_tokens": %d}, "words")[:3], flush=True)`, tokens),
		fmt.Sprintf(`print(ask(base + "/v1/responses", {"input": "hello there", "max_output_tokens": %d}, "words")[:3], flush=True)`, tokens),
		fmt.Sprintf(`print(ask(base + "/v1/messages", {"messages": said, "max_tokens": %d}, "words")[:3], flush=True)`, tokens))
}

// A call that names a larger maximum than is left of its budget is made, with what is left
// written into it where the agent wrote its own, and nothing else changed. The control names one
// that fits: its provider gets what the agent wrote.
func TestALargerMaximumIsWrittenSmaller(t *testing.T) {
	file, h := pricedWords(t), newCloved(t)
	h.stop(unix.SIGTERM)
	h.settings = "models: " + file + "\n"
	h.serve()
	for _, row := range []struct {
		tokens int
		want   []string // of the bodies, in their order
	}{
		{32_000, []string{`said,"max_tokens":3999,"model":"words"}`, `said,"max_completion_tokens":3699,"model":"words"}`,
			`"max_output_tokens":3398,"model":"words","store":false}`, `said,"max_tokens":3098,"model":"words"}`}},
		{500, []string{`said,"max_tokens":500,"model":"words"}`, `said,"max_completion_tokens":500,"model":"words"}`,
			`"max_output_tokens":500,"model":"words","store":false}`, `said,"max_tokens":500,"model":"words"}`}},
	} {
		name := fmt.Sprintf("asks%d", row.tokens)
		r := h.clove(append([]string{"run", "--name", name, "--network=none", "--model=words", "--model-log", "--budget=cost=0.20usd", "--"}, asksFor(row.tokens)...)...)
		if r.code != 0 || r.stdout != strings.Repeat("200\n", 4) {
			t.Fatalf("%d: exit %d, %s%s", row.tokens, r.code, r.stdout, r.stderr)
		}
		said := `{"messages":[{"role": "user", "content": "hello there"}]`
		var bodies []string
		for line := range strings.Lines(h.clove("logs", "--models", name).stdout) {
			if line = strings.TrimSpace(line); strings.HasSuffix(line, `"model":"words"}`) || strings.HasSuffix(line, `"store":false}`) {
				bodies = append(bodies, line)
			}
		}
		var want []string
		for _, text := range row.want {
			if strings.HasPrefix(text, "said") {
				text = said + strings.TrimPrefix(text, "said")
			} else {
				text = `{"input":"hello there",` + text
			}
			want = append(want, text)
		}
		if !slices.Equal(bodies, want) {
			t.Errorf("%d: the provider got\n%s\nwant\n%s", row.tokens, strings.Join(bodies, "\n"), strings.Join(want, "\n"))
		}
		h.clove("rm", name)
	}
}

// The end of a run by its budget is said in the unit that was typed, with what is spent, what the
// next call would have reserved, and a budget with room for it. The control has that.
func TestTheEndByABudgetSaysWhatGoesOn(t *testing.T) {
	pricedWords(t)
	h := newHost(t)
	run := func(budget string) result {
		return h.agent([]string{"--network=none", "--model=words", "--budget=" + budget}, asksFor(32_000)...)
	}
	for _, row := range []struct{ budget, said, next, warned string }{
		{"cost=0.08usd", "budget of 0.08usd: 0.03004usd are spent, and the next call would have reserved at least 0.0512", "cost=0.16usd", ""},
		{"tokens=1.9k,warn=500", "budget of 1900 tokens: 960 are spent, and the next call would have reserved at least 1048", "tokens=3800", "budget: 640 of 1900 tokens are used\n"},
	} {
		r := run(row.budget)
		if r.record.Status != agent.StatusBudget || r.code != agent.ExitKilled || !strings.Contains(r.stderr, row.said) || !strings.Contains(r.stderr, row.warned) ||
			!strings.Contains(r.stderr, ": give more with --budget "+row.next+", or") {
			t.Errorf("%s: exit %d, %s%s", row.budget, r.code, r.stdout, r.stderr)
		}
		if r := run(row.next); r.code != 0 || r.stdout != strings.Repeat("200\n", 4) {
			t.Errorf("control: exit %d, %s%s", r.code, r.stdout, r.stderr)
		}
	}
}
