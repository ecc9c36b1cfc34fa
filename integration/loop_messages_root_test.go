//go:build root

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"clove.run/clove/models/scripted"
)

// A model of the family anthropic does a task with tools, though its provider has messages alone and
// refuses what lacks a maximum of output. The conversation goes on with a model in OpenAI's format, and
// back. The control: that model called as chat completions is refused.
func TestTheLoopSpeaksMessages(t *testing.T) {
	h, _, folder := newLoopHost(t, "/nowhere")
	script, err := scripted.ParseScript([]byte(fmt.Sprintf(loopScript, "/nowhere")))
	if err != nil {
		t.Fatal(err)
	}
	answers := scripted.New(script)
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		if fault := faultOf(r.URL.Path, text); fault != "" {
			t.Errorf("%s: %s", fault, text)
			http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"`+fault+`"}}`, http.StatusBadRequest)
			return
		}
		calls.Add(1)
		r.Body = io.NopCloser(bytes.NewReader(text))
		answers.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	config := os.Getenv("CLOVE_MODELS")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	both := strings.Replace(string(text), "models:\n", "  a: {family: anthropic, url: "+s.URL+", plain: true, users: ['*']}\nmodels:\n  claude/x: {targets: [{provider: a, model: claude-x}]}\n", 1)
	if err := os.WriteFile(config, []byte(both), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, row := range []struct {
		model string
		flags []string
		calls int64 // so far
	}{{"claude/x", nil, 3}, {"worker", nil, 3}, {"claude/x", []string{"--budget", "tokens=100k"}, 6}} {
		args := append([]string{"ask", "--rm", "--home", "both", "--network", "none", "--model", row.model, "--workspace", folder}, row.flags...)
		r := h.clove(append(args, fmt.Sprintf("Create a hello.py, time %d", i))...)
		if r.code != 0 || r.stdout != "It prints Hello, world\n" || !strings.Contains(r.stderr, "loop: answers: 3; tokens: ") || calls.Load() != row.calls {
			t.Fatalf("%s, time %d: exit %d, %d calls, %s%s", row.model, i, r.code, calls.Load(), r.stdout, r.stderr)
		}
	}
	kept := h.in(folder, "", "run", "--rm", "--workspace", ".", "--home", "both", "--", "cat", "/home/agent/.clove/conversation.jsonl").stdout
	if strings.Count(kept, `"content":"Create a hello.py, time`) != 3 || strings.Count(kept, `"role":"tool"`) != 9 {
		t.Errorf("%s", kept)
	}
	ask := `import json, os, urllib.request as u, urllib.error
try: u.urlopen(u.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps({"model": "claude/x", "messages": []}).encode()))
except urllib.error.HTTPError as e: print(e.code, e.read().decode())`
	if r := h.clove("run", "--rm", "--network", "none", "--model", "claude/x", "--", "python3", "-c", ask); !strings.Contains(r.stdout, "404 ") || !strings.Contains(r.stdout, "does not speak openai-chat") {
		t.Errorf("control: %s%s", r.stdout, r.stderr)
	}
}

// faultOf is why Anthropic's service would refuse a request.
func faultOf(path string, text []byte) string {
	var body struct {
		MaxTokens int `json:"max_tokens"`
		Messages  []struct {
			Role    string
			Content []struct {
				Type, ID string
				Result   string `json:"tool_use_id"`
			}
		}
	}
	if err := json.Unmarshal(text, &body); path != "/v1/messages" || err != nil || body.MaxTokens < 1 {
		return "no request of messages with max_tokens"
	}
	ids, open := map[string]bool{}, []string{}
	for i, m := range body.Messages {
		if m.Role != []string{"user", "assistant"}[i%2] || len(m.Content) == 0 {
			return "the roles do not take turns"
		}
		for _, b := range m.Content {
			switch {
			case b.Type == "tool_use" && ids[b.ID]:
				return "an id occurs twice"
			case b.Type == "tool_use":
				ids[b.ID], open = true, append(open, b.ID)
			case b.Type == "tool_result" && (len(open) == 0 || open[0] != b.Result):
				return "a result has no call"
			case b.Type == "tool_result":
				open = open[1:]
			case m.Role == "user" && len(open) > 0:
				return "a call has no result"
			}
		}
	}
	return ""
}
