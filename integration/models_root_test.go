//go:build root

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// askScript asks once by each format, and prints status and text of each answer.
const askScript = `
import json, os, urllib.request, urllib.error
def ask(url, body, model):
    request = urllib.request.Request(url, json.dumps(dict(body, model=model)).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            text = answer.read().decode()
            return f"200 {text}"
    except urllib.error.HTTPError as problem:
        return f"{problem.code} {problem.read().decode()}"
    except OSError as problem:
        return f"0 {problem}"
base = os.environ.get("CLOVE_MODEL_URL", "http://127.0.0.1:8411")
said = [{"role": "user", "content": "hello there"}]
`

// modelAgent is a command that asks as the lines say.
func modelAgent(lines ...string) []string {
	return []string{"python3", "-c", askScript + strings.Join(lines, "\n")}
}

const (
	askChat      = `print(ask(base + "/v1/chat/completions", {"messages": said}, "%s"))`
	askResponses = `print(ask(base + "/v1/responses", {"input": "hello there"}, "%s"))`
	askMessages  = `print(ask(base + "/v1/messages", {"messages": said, "max_tokens": 20}, "%s"))`
)

// An agent without a network and without a key calls a model in each format. The control:
// without --model nothing listens.
func TestAnAgentCallsAModel(t *testing.T) {
	for name, newOne := range map[string]func(*testing.T) *host{
		"without cloved": newHost,
		"with cloved":    func(t *testing.T) *host { return newCloved(t).host },
	} {
		t.Run(name, func(t *testing.T) {
			h := newOne(t)
			for _, ask := range []string{askChat, askResponses, askMessages} {
				r := h.agent([]string{"--network=none", "--model=echo"}, modelAgent(fmt.Sprintf(ask, "echo"))...)
				if !strings.HasPrefix(r.stdout, "200 ") || !strings.Contains(r.stdout, "hello there") {
					t.Errorf("%s: %s%s", ask, r.stdout, r.stderr)
				}
			}
			if r := h.agent([]string{"--network=none", "--agent-socket"}, modelAgent(fmt.Sprintf(askChat, "echo"))...); !strings.HasPrefix(r.stdout, "0 ") {
				t.Errorf("control: %s%s", r.stdout, r.stderr)
			}
			r := h.agent([]string{"--network=none", "--model=scripted"}, modelAgent(fmt.Sprintf(askChat, "echo"), fmt.Sprintf(askMessages, "none"))...)
			if lines := strings.Split(r.stdout, "\n"); !strings.HasPrefix(lines[0], "403 ") || !strings.HasPrefix(lines[1], "404 ") {
				t.Errorf("what is not granted, and what does not exist: %s%s", r.stdout, r.stderr)
			}
		})
	}
}

// A budget of tokens refuses the call that does not fit, or ends the run. The control has
// more.
func TestABudgetBoundsModels(t *testing.T) {
	h := newHost(t)
	twice := modelAgent(fmt.Sprintf(askMessages, "echo"), fmt.Sprintf(askMessages, "echo"), `print("goes on")`)
	flags := func(tokens string, more ...string) []string {
		return append([]string{"--network=none", "--model=echo", "--budget=tokens=" + tokens}, more...)
	}
	if r := h.agent(flags("1000", "--at-end=refuse"), twice...); strings.Count(r.stdout, "200 ") != 2 {
		t.Errorf("control: %s%s", r.stdout, r.stderr)
	}
	r := h.agent(flags("42", "--at-end=refuse"), twice...)
	if lines := strings.Split(r.stdout, "\n"); !strings.HasPrefix(lines[0], "200 ") || !strings.Contains(lines[1], "budget") && !strings.Contains(lines[1], "tokens") || strings.HasPrefix(lines[1], "200 ") || lines[2] != "goes on" {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

// provider is a stand-in for a provider on the host's loopback.
type provider struct {
	*httptest.Server
	calls atomic.Int64
	key   atomic.Value // of the last call
	then  atomic.Value // http.HandlerFunc
	more  string       // keys of the provider in models.yaml
}

const answerOfProvider = `{"id":"x","object":"chat.completion","created":1,"model":"small-1","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"from the provider"}}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`

func newProvider(t *testing.T) *provider {
	p := &provider{}
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answerOfProvider)
	})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.calls.Add(1)
		p.key.Store(r.Header.Get("Authorization"))
		p.then.Load().(http.HandlerFunc)(w, r)
	}))
	t.Cleanup(p.Close)
	return p
}

// answers sets what answers the next calls.
func (p *provider) answers(then http.HandlerFunc) { p.then.Store(then) }

const secretKey = "sk-a-key-that-no-agent-sees-0123456789"

// configure writes a models.yaml that names the provider, and its key.
func (p *provider) configure(t *testing.T) (file, secrets string) {
	dir := t.TempDir()
	file = filepath.Join(dir, "models.yaml")
	text := "providers:\n  near: {family: openai, url: " + p.URL + "/v1, plain: true, key: near" + p.more + "}\n" +
		"models:\n  small: {targets: [{provider: near, model: small-1}]}\n" +
		"prices:\n- {provider: near, model: small-1, in: 1000, out: 2000, date: 2026-01-01, source: here}\n"
	for path, text := range map[string]string{file: text, filepath.Join(dir, "near"): secretKey + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return file, dir
}

// Only the provider gets the key: not the agent, the record, the state, the events or the log.
// The run pays the usage that the provider reports.
func TestAProvidersKeyStaysOutside(t *testing.T) {
	p := newProvider(t)
	file, secrets := p.configure(t)
	d := newCloved(t)
	d.stop(unix.SIGTERM)
	d.settings = "models: " + file + "\nsecrets: " + secrets + "\nlog_level: debug\n"
	d.serve()
	r := d.agent([]string{"--network=none", "--model=small", "--budget=cost=1usd", "--name=payer"},
		modelAgent(fmt.Sprintf(askChat, "small"), `import pathlib`, `print(pathlib.Path("/proc/self/environ").read_bytes())`)...)
	if !strings.Contains(r.stdout, "from the provider") || p.key.Load() != "Bearer "+secretKey {
		t.Fatalf("%s%s; the provider saw %v", r.stdout, r.stderr, p.key.Load())
	}
	record, _ := json.Marshal(r.record)
	events := d.clove("events", "--once", "--json", "--since", "1h")
	if used := r.record.Usage.Models; len(used) != 1 || used[0] != (agent.ModelUse{Model: "small", Calls: 1, TokensIn: 7, TokensOut: 5, CostMicros: 17}) {
		t.Errorf("the record has %+v", used)
	}
	for name, text := range map[string]string{"output": r.stdout + r.stderr, "record": string(record), "events": events.stdout} {
		if strings.Contains(text, secretKey) {
			t.Errorf("the key is in the %s", name)
		}
	}
	for _, dir := range []string{d.state, d.run} {
		if found := filesWith(t, dir, secretKey); len(found) > 0 {
			t.Errorf("the key is in %v", found)
		}
	}
	if found := filesWith(t, secrets, secretKey); len(found) != 1 {
		t.Errorf("control: the key is in %v", found)
	}
	if audit := d.clove("audit", "tail"); !strings.Contains(audit.stdout, "cost=0.000017usd") { // 7 for 1000 and 5 for 2000 nano-dollars
		t.Errorf("it did not pay what the provider reports:\n%s", audit.stdout)
	}
}

// filesWith names the files below dir that have a text in them.
func filesWith(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // a mount or a socket
		}
		if holds(t, path, text) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// holds reports whether a file has a text in it. An agent's layer is an image of gigabytes, most
// of them holes, which are not read.
func holds(t *testing.T, path, text string) bool {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		return false // it is gone
	}
	defer file.Close()
	buffer := make([]byte, 1<<20)
	for at := int64(0); ; {
		if at, err = file.Seek(at, unix.SEEK_DATA); errors.Is(err, unix.ENXIO) { // only a hole follows
			return false
		}
		n := 0
		if err == nil {
			n, err = file.ReadAt(buffer, at)
		}
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
		if bytes.Contains(buffer[:n], []byte(text)) {
			return true
		}
		if err == io.EOF {
			return false
		}
		at += int64(n - len(text) + 1) // a part of the text may be at the end
	}
}

// A redirection would carry the key somewhere else, so none is followed. The control is an
// answer.
func TestNoRedirectionIsFollowed(t *testing.T) {
	other := newProvider(t)
	p := newProvider(t)
	file, secrets := p.configure(t)
	t.Setenv("CLOVE_MODELS", file)
	t.Setenv("CLOVE_SECRETS", secrets)
	h := newHost(t)
	ask := modelAgent(fmt.Sprintf(askChat, "small"))
	if r := h.agent([]string{"--network=none", "--model=small"}, ask...); !strings.Contains(r.stdout, "from the provider") {
		t.Fatalf("control: %s%s", r.stdout, r.stderr)
	}
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/v1/chat/completions", http.StatusTemporaryRedirect)
	})
	if r := h.agent([]string{"--network=none", "--model=small"}, ask...); strings.HasPrefix(r.stdout, "200") || other.calls.Load() != 0 {
		t.Errorf("%d calls elsewhere: %s%s", other.calls.Load(), r.stdout, r.stderr)
	}
}

// The processes of models are replaced when they are killed, while the agent's listener
// stays.
func TestKilledProcessesOfModelsAreReplaced(t *testing.T) {
	d := newCloved(t)
	r := d.start([]string{"--network=none", "--model=echo"}, "python3", "-uc", askScript+`
for line in iter(input, ""):
    print(ask(base + "/v1/messages", {"messages": said, "max_tokens": 20}, "echo"))
`)
	ask := func() string {
		t.Helper()
		if _, err := io.WriteString(r.stdin, "again\n"); err != nil {
			t.Fatal(err)
		}
		line, err := r.stdout.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	if line := ask(); !strings.HasPrefix(line, "200 ") {
		t.Fatalf("control: %s", line)
	}
	for _, program := range []string{"clove-upstream", "clove-models"} {
		pids := childrenNamed(t, d.cmd.Process.Pid, program)
		if len(pids) == 0 {
			t.Fatalf("cloved has no %s", program)
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		until(t, "models are served again without "+program, func() bool { return strings.HasPrefix(ask(), "200 ") })
	}
	r.stdin.Close()
	if end := r.wait(); end.record.Status != agent.StatusExited {
		t.Errorf("%s, %s", end.record.Status, end.stderr)
	}
}
