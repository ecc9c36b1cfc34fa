//go:build root

package integration

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/models"
	"clove.run/clove/models/scripted"
)

// Tokens of a subscription, made up.
const (
	firstToken  = "sk-ant-oat01-made-up-0123456789-first"
	secondToken = "sk-ant-oat01-made-up-0123456789-second"
)

// planService is a stand-in for the services of subscriptions. It takes one token alone, as a bearer
// token, and answers from the script of the coding agents.
type planService struct {
	*httptest.Server
	script http.Handler

	mu    sync.Mutex // guards the following
	token string
	got   []http.Header
	wrong []string // requests that the services would not take
}

// newPlanService starts one. https says whether over TLS.
func newPlanService(t *testing.T, https bool) *planService {
	t.Helper()
	text, err := os.ReadFile("clients/agents/script.yaml")
	if err != nil {
		t.Fatal(err)
	}
	script, err := scripted.ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	s := &planService{script: scripted.New(script), token: firstToken}
	start := httptest.NewServer
	if https {
		start = httptest.NewTLSServer
	}
	s.Server = start(s)
	t.Cleanup(s.Close)
	return s
}

// takes sets the token that the service takes.
func (s *planService) takes(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// requests returns the headers of the requests so far, and what was wrong with them.
func (s *planService) requests() ([]http.Header, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got), slices.Clone(s.wrong)
}

func (s *planService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	s.mu.Lock()
	defer s.mu.Unlock() // a client calls once at a time
	s.got = append(s.got, r.Header)
	if r.Header.Get("Authorization") != "Bearer "+s.token || r.Header.Get("X-Api-Key") != "" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"type":"error","error":{"type":"authentication_error","message":"log in again: %s"}}`, r.Header.Get("Authorization"))
		return
	}
	if wrong := unlike(r, body); wrong != "" {
		s.wrong = append(s.wrong, wrong)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"detail":%q}`, wrong)
		return
	}
	r.URL.Path = "/v1" + strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/backend-api/codex"), "/v1")
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.script.ServeHTTP(w, r)
}

// unlike says what the service of a client would not take of a request, by what is published of
// it; empty: it takes it.
func unlike(r *http.Request, body []byte) string {
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		return err.Error()
	}
	_, named := fields["max_output_tokens"]
	switch {
	case r.URL.Path == "/v1/messages" || r.URL.Path == "/v1/messages/count_tokens":
		if !strings.Contains(r.Header.Get("Anthropic-Beta"), "oauth-2025-04-20") {
			return "OAuth authentication is not supported"
		}
	case r.URL.Path != "/backend-api/codex/responses":
		return "no path " + r.URL.Path
	case r.Header.Get("Chatgpt-Account-Id") != "acc-made-up":
		return "no account"
	case named:
		return "Unsupported parameter: max_output_tokens"
	case fields["store"] != false:
		return "Store must be set to false"
	case fields["stream"] != true:
		return "Stream must be set to true"
	}
	return ""
}

// configure writes a models.yaml with a model at the service, whose provider has the keys, and the
// token.
func (s *planService) configure(t *testing.T, keys, model string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files := map[string]string{"token": firstToken + "\n"}
	if c := s.Certificate(); c != nil {
		files["ca.pem"] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
		keys += ", ca: " + dir + "/ca.pem"
	}
	files["models.yaml"] = "providers:\n  plan: {key: token, " + keys + "}\nmodels:\n  " + model + ": {targets: [{provider: plan}]}\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// always are the headers that clove writes into each request.
var always = []string{"User-Agent", "Content-Length", "Accept-Encoding", "Content-Type", "Authorization", "Anthropic-Version", "Anthropic-Beta", "Chatgpt-Account-Id"}

// strangers are the headers of a request that are not of a client's row and not clove's.
func strangers(client string, h http.Header) (found []string) {
	for name := range h {
		passes := slices.ContainsFunc(models.SubscriptionOf(client).Passes, func(p models.PassedHeader) bool { return p.Name == name })
		if !passes && !slices.Contains(always, name) {
			found = append(found, name)
		}
	}
	return found
}

// search looks for a text, written in two parts, in all that an agent can read of processes, and
// in its files. So that a find is seen, it looks for a planted one, too.
const search = `
import glob, os
def find(text):
    found = []
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + [os.path.join(d, f) for top in (os.environ["HOME"], "/workspace", "/tmp", "/run", "/etc") for d, _, fs in os.walk(top) for f in fs]:
        try:
            if os.path.exists(path) and not os.path.islink(path) and text in open(path, "rb").read(): found.append(path)
        except OSError: pass
    return found
print("token", find(b"sk-ant-oat01-" + b"made-up"))
open(os.path.expanduser("~/planted"), "w").write("planted" + "-text")
print("planted", len(find(b"planted" + b"-text")), flush=True)
`

// subscribed are the coding agents, each with the keys of its provider, a command that adds a header by
// hand, and what its User-Agent begins with.
var subscribed = []struct {
	client, script, keys, command, agent string
}{
	{"claude-code", "claude-task", "family: anthropic, url: %s, plain: true, subscription: claude-code",
		`env ANTHROPIC_CUSTOM_HEADERS="X-Mine: by-hand" /opt/agents/@anthropic-ai/claude-code-linux-x64/claude -p --permission-mode acceptEdits "write a greeting"`, "claude-cli/2.1.330"},
	{"codex", "codex-task", "family: openai, url: %s/backend-api/codex, plain: true, subscription: codex, account: acc-made-up",
		`/opt/agents/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -c 'model_providers.clove.http_headers={"X-Mine"="by-hand"}' "write a greeting"`, "codex_exec/0.169.0"},
}

// A coding agent does its task through a subscription's provider: the service gets the token and
// the headers of the client's row, no header that was added by hand, and nothing that it would
// refuse; nothing of the token is in the sandbox. The control: without clove the client sends the
// added header.
func TestCodingAgentsUseASubscription(t *testing.T) {
	for _, c := range subscribed {
		t.Run(c.client, func(t *testing.T) {
			h, s := newHost(t), newPlanService(t, false)
			dir := s.configure(t, fmt.Sprintf(c.keys, s.URL), c.script)
			t.Setenv("CLOVE_MODELS", filepath.Join(dir, "models.yaml"))
			t.Setenv("CLOVE_SECRETS", dir)
			flags := append(clientsOf(t, "agents"), "--model="+c.script, "--model-setup="+c.client, "--budget=tokens=500k")
			r := h.agent(flags, "sh", "-c", "timeout 50 "+c.command+" </dev/null && cat greeting.txt && python3 -c '"+search+"'")
			name, _, _ := strings.Cut(c.script, "-")
			if r.code != 0 || !strings.HasSuffix(r.stdout, "hello from "+name+"\ntoken []\nplanted 1\n") || strings.Contains(r.stdout+r.stderr, firstToken) {
				t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
			}
			got, wrong := s.requests()
			if len(got) < 2 || len(wrong) > 0 {
				t.Errorf("%d requests, %v", len(got), wrong)
			}
			for _, header := range got {
				if found := strangers(c.client, header); len(found) > 0 || !strings.HasPrefix(header.Get("User-Agent"), c.agent) || header.Get("Authorization") != "Bearer "+firstToken {
					t.Errorf("%v of %v", found, header)
				}
				for _, p := range models.SubscriptionOf(c.client).Passes {
					if header.Get(p.Name) == "" {
						t.Errorf("no %s in %v", p.Name, header)
					}
				}
			}
			if used := r.record.Usage.Models; len(used) != 1 || used[0].TokensIn == 0 || used[0].CostMicros != 0 || used[0].Failed != 0 {
				t.Errorf("%+v", used)
			}
			s.alone(t, h, c.command)
		})
	}
}

// alone is the control: a client that reaches the service itself sends what it was told to send.
func (s *planService) alone(t *testing.T, h *host, command string) {
	t.Helper()
	before, _ := s.requests()
	config := "mkdir -p ~/.codex && cat >~/.codex/config.toml <<'END'\nmodel = \"codex-task\"\nmodel_provider = \"clove\"\n[model_providers.clove]\nname = \"clove\"\nbase_url = \"" + s.URL + "/v1\"\nenv_key = \"OPENAI_API_KEY\"\nwire_api = \"responses\"\nEND\n"
	flags := append(clientsOf(t, "agents")[1:], "--network=host", "-e=ANTHROPIC_BASE_URL="+s.URL, "-e=ANTHROPIC_API_KEY=clove", "-e=OPENAI_API_KEY=clove",
		"-e=ANTHROPIC_MODEL=claude-task", "-e=CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	h.agent(flags, "sh", "-c", config+"timeout 20 "+command+" </dev/null")
	got, _ := s.requests()
	if len(got) == len(before) || got[len(before)].Get("X-Mine") != "by-hand" {
		t.Errorf("control: %d requests, %v", len(got)-len(before), got[len(before):])
	}
}

// expiring calls a model with headers of its own for each line that it reads.
const expiring = `
import http.client, json, sys
for line in sys.stdin:
    c = http.client.HTTPConnection("127.0.0.1", 8411, timeout=20)
    c.request("POST", "/v1/messages", json.dumps({"model": "claude-text", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}), {"User-Agent": "claude-cli/9",
        "X-App": "cli", "X-Claude-Code-Session-Id": "s-1", "X-Mine": "by-hand", "Authorization": "Bearer mine", "X-Api-Key": "mine", "Cookie": "mine", "anthropic-beta": "oauth-2025-04-20,effort-2025-11-24"})
    a = c.getresponse()
    print(a.status, a.read(), flush=True)
`

// A token that has expired is said to the agent and to clove models test, with what to do. A new
// one in the file holds from the next call on, without a reload. Neither token is with the agent,
// nor in a record, event, log, audit, debug bundle, state, environment or command line.
func TestATokenExpiresAndIsRenewed(t *testing.T) {
	s := newPlanService(t, true)
	dir := s.configure(t, "family: anthropic, url: "+s.URL+", subscription: claude-code", "claude-text")
	d := newCloved(t)
	d.stop(unix.SIGTERM)
	d.settings = "models: " + dir + "/models.yaml\nsecrets: " + dir + "\nlog_level: debug\n"
	d.serve()
	r := d.start([]string{"--network=none", "--model=claude-text", "--name=member"}, "python3", "-c", expiring)
	var said strings.Builder
	call := func(want ...string) {
		t.Helper()
		fmt.Fprintln(r.stdin)
		line := r.line()
		said.WriteString(line + "\n")
		for _, words := range want {
			if !strings.Contains(line, words) {
				t.Errorf("no %q in %s", words, line)
			}
		}
	}
	call("200 ", "It is written.")
	s.takes(secondToken)
	call("401 ", "the provider does not accept the token of its subscription", "claude setup-token makes one", "/etc/clove/secrets/token")
	test := d.clove("models", "test", "claude-text")
	if test.code != 1 || !strings.Contains(test.stderr, "status 401 to the key") || !strings.Contains(test.stderr, "claude setup-token makes one") {
		t.Errorf("exit %d: %s%s", test.code, test.stdout, test.stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(secondToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call("200 ", "It is written.")
	if test := d.clove("models", "test", "claude-text"); test.code != 0 {
		t.Errorf("exit %d: %s%s", test.code, test.stdout, test.stderr)
	}
	got, wrong := s.requests()
	if len(wrong) > 0 || len(got) != 5 {
		t.Fatalf("%d requests, %v", len(got), wrong)
	}
	for _, i := range []int{0, 1, 3} { // the others are of models test
		h := got[i]
		if found := strangers("claude-code", h); len(found) > 0 || h.Get("User-Agent") != "claude-cli/9" || h.Get("X-App") != "cli" || h.Get("X-Claude-Code-Session-Id") != "s-1" ||
			h.Get("Anthropic-Beta") != "effort-2025-11-24,oauth-2025-04-20" {
			t.Errorf("%v of %v", found, h)
		}
	}
	r.stdin.Close()
	end := r.wait()
	record, err := json.Marshal(end.record)
	if err != nil || end.record.Status != agent.StatusExited {
		t.Errorf("%v, %s", err, record)
	}
	texts := map[string]string{"agent": said.String() + end.stdout + end.stderr, "test": test.stdout + test.stderr, "log": d.log(), "record": string(record),
		"events": d.clove("events", "--once", "--json", "--since", "1h").stdout, "audit": d.clove("audit", "tail").stdout, "list": d.clove("models", "list", "--json").stdout}
	for name, text := range d.debug() {
		texts["debug "+name] = text
	}
	for name, text := range texts {
		if strings.Contains(text, "sk-ant-oat01") || text == "" && !strings.HasPrefix(name, "debug") {
			t.Errorf("%s: %s", name, around(text+"sk-ant-oat01", "sk-ant-oat01"))
		}
	}
	if found := shownWith(t, "sk-ant-oat01-made-up"); len(found) > 0 {
		t.Errorf("a token is in %v", found)
	}
	for _, at := range []string{d.state, d.run} {
		if found := filesWith(t, at, "sk-ant-oat01-made-up"); len(found) > 0 {
			t.Errorf("a token is in %v", found)
		}
	}
	if found := filesWith(t, dir, secondToken); len(found) != 1 {
		t.Errorf("control: the token is in %v", found)
	}
}
