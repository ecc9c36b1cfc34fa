//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
)

// use lets the runs of a host without cloved use the provider, as "near", with these lines of
// models.yaml besides.
func (p *provider) use(t *testing.T, lines ...string) {
	t.Helper()
	dir := t.TempDir()
	text := "providers:\n  near: {family: openai, url: " + p.URL + "/v1, plain: true, key: near}\n" + strings.Join(lines, "\n") + "\n"
	for name, text := range map[string]string{"models.yaml": text, "near": secretKey + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CLOVE_MODELS", filepath.Join(dir, "models.yaml"))
	t.Setenv("CLOVE_SECRETS", dir)
}

// named is a model of near's that the provider knows by the same name.
func named(names ...string) string {
	text := "models:\n"
	for _, name := range names {
		text += "  " + name + ": {targets: [{provider: near, model: " + name + "}]}\n"
	}
	return text
}

// seen collects what a provider is asked for.
type seen struct {
	mu  sync.Mutex // guards all
	all asked
}

// asked is what a provider was asked for.
type asked struct {
	models map[string]int
	paths  map[string]int
	wrong  []string // requests with something that no client of clove's sends
}

// note reads a request as Go's own decoder does, to which MODEL and model are the same.
func (s *seen) note(r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	var body struct{ Model string }
	err := json.Unmarshal(text, &body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.models[body.Model]++
	s.all.paths[r.Method+" "+r.RequestURI]++
	for name := range r.Header {
		switch name {
		case "Authorization", "Content-Type", "Content-Length", "User-Agent", "Accept-Encoding":
		default:
			s.all.wrong = append(s.all.wrong, name)
		}
	}
	if err != nil || r.Header.Get("Authorization") != "Bearer "+secretKey || len(r.TransferEncoding) > 0 {
		s.all.wrong = append(s.all.wrong, string(text))
	}
}

// since returns what came since the last time.
func (s *seen) since() asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.all
	s.all = asked{models: map[string]int{}, paths: map[string]int{}}
	return all
}

func newSeen(p *provider) *seen {
	s := &seen{}
	s.since()
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		s.note(r)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answerOfProvider)
	})
	return s
}

// bodies are requests for the model other, hidden in one for small.
var bodies = []string{
	`{"model":"small","model":"other",S}`, `{"model":"small","MODEL":"other",S}`, `{"MODEL":"other","model":"small",S}`, `{"model":"small","mod\u0065l":"other",S}`,
	`{"model":"small","Model":"other",S}`, `{"model":["small","other"],S}`, `{"model":{"small":"other"},S}`, `{"model":"small\u0000","x":"other",S}`,
	`{"model":"small",S}{"model":"other",S}`, `{"model":"small",S,"extra_body":{"model":"other"}}`, `{"model":"small",S,"fallback_models":["other"]}`,
	`{"model":"small",S,"route":"x","models":["other"]}`,
}

// names are ways to write what is not granted, or not a name.
var names = []string{
	"other", "nick", "OTHER", "Small", "SMALL", "small ", " small", "small\t", "small\n", "small\u0000", "small\u200b", "\uff53mall", "sma\u017fl", "\u0455mall", "sm%61ll", "small%00",
	"./small", "small/", "small/../other", "small:provider-tools", "model:small", "model:other", "*", "sm*", "o*", "small,other", "small;other", "", "tiny/nick", "nick:tiny", "..", "other\u0300",
	"small\r\nX-Model: other", "near/other", "small|other", "$(other)", "smaller",
}

// A model that is not granted is not reached by another way to write it: the provider is
// asked for the granted one only. The control: the granted model and its alias are, and with
// the grant of a pattern or of the other model, that one is, too.
func TestAModelThatIsNotGranted(t *testing.T) {
	p := newProvider(t)
	s := newSeen(p)
	p.use(t, named("small", "other", "smaller"), "aliases: {tiny: small, nick: other}")
	h := newHost(t)
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := json.Marshal(bodies)
	if err != nil {
		t.Fatal(err)
	}
	script := []string{
		"import urllib.parse",
		"def show(what, answer): print(answer[:3], what.encode('unicode_escape').decode())",
		fmt.Sprintf("for name in %s: show('name ' + name, ask(base + '/v1/chat/completions', {'messages': said}, name))", list),
		"def raw(url, body=None):\n    try:\n        with urllib.request.urlopen(urllib.request.Request(url, body, {'Content-Type': 'application/json'}), timeout=20) as a: return f'{a.status}'\n    except urllib.error.HTTPError as e: return f'{e.code}'\n    except Exception as e: return '0 ' + repr(e)",
		fmt.Sprintf("for body in %s: show('body ' + body, raw(base + '/v1/chat/completions', body.replace('S', '\"messages\":' + json.dumps(said)).encode()))", texts),
		fmt.Sprintf("for name in %s: show('path ' + name, raw(base + '/v1/models/' + urllib.parse.quote(name, safe='')) if name not in ('', '..') else '404')", list),
	}
	r := h.agent([]string{"--network=none", "--model=small"}, modelAgent(script...)...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(lines) != 2*len(names)+len(bodies) {
		t.Fatalf("%d lines: %s%s", len(lines), r.stdout, r.stderr)
	}
	for _, line := range lines {
		if !strings.HasPrefix(line, "4") {
			t.Errorf("not refused: %s", line)
		}
	}
	if got := s.since(); len(got.models) != 0 {
		t.Errorf("the provider was asked for %v", got.models)
	}
	for _, row := range []struct{ model, ask, wanted string }{
		{"small", "small", "small"}, {"small", "tiny", "small"}, {"other", "nick", "other"}, {"sm*", "smaller", "smaller"}, {"*", "other", "other"},
	} {
		r := h.agent([]string{"--network=none", "--model=" + row.model}, modelAgent(fmt.Sprintf(askChat, row.ask))...)
		if got := s.since(); !strings.HasPrefix(r.stdout, "200 ") || got.models[row.wanted] != 1 || len(got.models) != 1 || len(got.wrong) > 0 {
			t.Errorf("control: %+v: %s%s, %+v", row, r.stdout, r.stderr, got)
		}
	}
}

// smuggler sends each text as it is, and prints the statuses that come until the end.
const smuggler = `
import json, os, re, socket, sys
host, port = os.environ["OPENAI_BASE_URL"].split("/")[2].split(":")
for text in json.loads(TEXTS):
    c = socket.create_connection((host, int(port)), 20)
    c.settimeout(20)
    got = b""
    try:
        c.sendall(text.encode("latin-1") + b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        while True:
            part = c.recv(65536)
            if not part: break
            got += part
    except OSError as e: got += repr(e).encode()
    print(re.findall(rb"HTTP/1\.1 (\d+)", got), flush=True)
`

// smuggled are requests with two readings around another one, which is for an administrator
// of the provider; and headers with which an agent would speak as clove.
func smuggled() (texts []string) {
	body := `{"model":"small","messages":[{"role":"user","content":"hello"}]}`
	inner := "POST /admin HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mine\r\nContent-Length: 2\r\n\r\n{}"
	post := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	length := func(n int) string { return "Content-Length: " + strconv.Itoa(n) + "\r\n" }
	chunk := func(text, extension string) string { return fmt.Sprintf("%x%s\r\n%s\r\n", len(text), extension, text) }
	for _, head := range []string{
		length(len(body)) + "Transfer-Encoding: chunked\r\n", length(0) + length(len(body)), length(len(body)) + length(len(body)+len(inner)), "Content-Length: 0, " + strconv.Itoa(len(body)) + "\r\n",
		"Content-Length:\r\n " + strconv.Itoa(len(body)) + "\r\n", "X: a\r\n Content-Length: 0\r\n" + length(len(body)), "Content-Length : " + strconv.Itoa(len(body)) + "\r\n", "Content-Length: +" + strconv.Itoa(len(body)) + "\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding:\x0bchunked\r\n" + length(len(body)),
		length(len(body)) + "Authorization: Bearer mine\r\nX-Api-Key: mine\r\nHost: evil\r\n", length(len(body)) + "Openai-Organization: other\r\nX-Forwarded-For: 1.2.3.4\r\nCookie: a=b\r\nForwarded: for=x\r\nVia: x\r\n",
		length(len(body)) + "X: a\rAuthorization: Bearer mine\r\n", length(len(body)) + "X: a\nAuthorization: Bearer mine\r\n", length(len(body)) + "X: a\x00b\r\n", length(len(body)) + "Expect: 100-continue\r\n",
		length(len(body)) + "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", length(len(body)) + "Connection: close, Authorization\r\nTrailer: Authorization\r\n",
	} {
		texts = append(texts, post+head+"\r\n"+body+inner)
	}
	chunked := post + "Transfer-Encoding: chunked\r\n\r\n"
	return append(texts, chunked+chunk(body, ";x="+strings.Repeat("y", 100))+"0\r\n\r\n"+inner, chunked+chunk(body, ";\"\r\n"+inner+"\"")+"0\r\n\r\n",
		chunked+chunk(body, "")+"0\r\nAuthorization: Bearer mine\r\nContent-Length: 9\r\n\r\n"+inner, chunked+"0"+chunk(body, "")+"0\r\n\r\n"+inner, chunked+chunk(body, "\n")+"0\n\n"+inner,
		"POST /v1/chat/completions?x=\r\nHost:%20evil HTTP/1.1\r\nHost: x\r\n"+length(len(body))+"\r\n"+body, "POST http://evil/admin HTTP/1.1\r\nHost: x\r\n"+length(len(body))+"\r\n"+body,
		"POST //admin HTTP/1.1\r\nHost: x\r\n"+length(len(body))+"\r\n"+body, "POST /v1/chat/completions/%2e%2e/%2e%2e/admin HTTP/1.1\r\nHost: x\r\n"+length(len(body))+"\r\n"+body,
		"POST /v1/chat/completions%0d%0aX:%20y HTTP/1.1\r\nHost: x\r\n"+length(len(body))+"\r\n"+body, "CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n")
}

// Whatever bytes an agent sends, the provider gets whole requests of clove's own making: one
// path, the key, and no header of the agent's. The control: sent to the provider itself, the
// inner requests and the headers arrive there.
func TestRequestsAreClovesOwn(t *testing.T) {
	p := newProvider(t)
	s := newSeen(p)
	p.use(t, named("small"))
	h := newHost(t)
	texts := smuggled()
	list, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(string(list))
	if err != nil {
		t.Fatal(err)
	}
	program := strings.Replace(smuggler, "TEXTS", string(quoted), 1)
	r := h.agent([]string{"--network=none", "--model=small"}, "python3", "-c", program)
	if lines := strings.Count(r.stdout, "\n"); lines != len(texts) {
		t.Fatalf("%d lines for %d texts: %s%s", lines, len(texts), r.stdout, r.stderr)
	}
	got := s.since()
	if n := got.paths["POST /v1/chat/completions"]; n == 0 || len(got.paths) != 1 || len(got.wrong) > 0 || got.models["small"] != n {
		t.Errorf("the provider got %+v", got)
	}
	for _, text := range texts {
		sendDirectly(t, p.URL, text)
	}
	if got := s.since(); got.paths["POST /admin"] == 0 || len(got.wrong) == 0 {
		t.Errorf("control: %+v", got)
	}
}

// sendDirectly sends a text to a provider, and waits for the end of what it answers.
func sendDirectly(t *testing.T, url, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, text) // it may refuse the first bytes
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(conn) // until a reset at the latest
	return string(answer)
}

// racer makes many calls at once, and prints the status of each when it comes.
const racer = `
import concurrent.futures, sys
def call(n):
    answer = ask(base + "/v1/chat/completions", {"messages": said, "max_tokens": 10}, "small")
    return answer[:3]
with concurrent.futures.ThreadPoolExecutor(64) as pool:
    for done in concurrent.futures.as_completed([pool.submit(call, n) for n in range(64)]):
        print(done.result(), flush=True)
`

// Calls that are made at the same time do not get more out of a budget than there is: of 64,
// the provider is asked for as many as fit, and for none more. The control: without the
// budget it is asked for all.
func TestParallelCallsKeepTheBudget(t *testing.T) {
	p := newProvider(t)
	var open atomic.Value // of chan struct{}
	var waiting atomic.Int64
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		waiting.Add(1)
		<-open.Load().(chan struct{})
		io.WriteString(w, strings.NewReplacer(`"completion_tokens":5`, `"completion_tokens":10`, `"total_tokens":12`, `"total_tokens":17`).Replace(answerOfProvider))
	})
	p.use(t, named("small"))
	h := newHost(t)
	for _, row := range []struct {
		budget string
		calls  int
	}{{"--budget=tokens_out=105", 10}, {"--budget=model_calls=1", 1}, {"--budget=model_calls=63", 63}, {"", 64}} {
		waiting.Store(0)
		gate := make(chan struct{})
		open.Store(gate)
		flags := []string{"--network=none", "--model=small", "--at-end=refuse"}
		if row.budget != "" {
			flags = append(flags, row.budget)
		} else {
			flags = flags[:2]
		}
		r := h.start(flags, modelAgent(racer)...)
		until(t, row.budget+": the provider is asked", func() bool { return int(waiting.Load()) >= row.calls })
		close(gate)
		answered := 0
		for range 64 {
			if r.line() == "200" {
				answered++
			}
		}
		end := r.wait()
		if n := int(waiting.Load()); n != row.calls || answered != row.calls {
			t.Errorf("%s: the provider was asked %d times and %d calls were answered, not %d", row.budget, n, answered, row.calls)
		}
		if used := end.record.Usage.Models; len(used) != 1 || used[0] != (agent.ModelUse{Model: "small", Calls: int64(row.calls), TokensIn: int64(7 * row.calls), TokensOut: int64(10 * row.calls)}) {
			t.Errorf("%s: %+v, %s", row.budget, used, end.stderr)
		}
	}
}
