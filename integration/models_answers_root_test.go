//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
)

// lies are usages that a provider reports, by model, and what is paid for a call with an
// answer of five tokens. In is -1 for the estimate.
var lies = []struct {
	model, usage string
	in, out      int64
}{
	{"control", `{"prompt_tokens":7,"completion_tokens":5}`, 7, 5},
	{"low", `{"prompt_tokens":0,"completion_tokens":0}`, 0, 0}, // the provider's own loss
	{"negative", `{"prompt_tokens":-1000000,"completion_tokens":-5,"total_tokens":-1000005}`, 0, 0},
	{"half-negative", `{"prompt_tokens":7,"completion_tokens":5,"total_tokens":-9}`, 7, 5},
	{"missing", ``, -1, 6},
	{"null", `null`, -1, 6},
	{"text", `{"prompt_tokens":"7","completion_tokens":"5"}`, -1, 6},
	{"list", `[7,5]`, -1, 6},
	{"nan", `{"prompt_tokens":NaN,"completion_tokens":5}`, -1, 6},
	{"infinite", `{"prompt_tokens":7,"completion_tokens":1e999}`, 7, 1_000_000_000},
	{"huge", `{"prompt_tokens":99999999999999999999999999,"completion_tokens":5}`, 1_000_000_000, 5},
	{"negative-cache", `{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-7}}`, 7, 5},
	{"more-cached", `{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":1000}}`, 0, 5},
	{"twice", `{"prompt_tokens":7,"completion_tokens":5},"usage":{"prompt_tokens":1,"completion_tokens":1}`, 7, 5},
}

// The usage that a provider reports is paid, within 0 and a bound; where it reports nothing that
// can be read, the estimates are. No report gives an agent tokens back.
func TestAProviderThatLiesAboutUsage(t *testing.T) {
	p := newProvider(t)
	reports := map[string]string{}
	var models []string
	for _, lie := range lies {
		reports["lie-"+lie.model] = lie.usage
		models = append(models, "lie-"+lie.model)
	}
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Model string }
		json.NewDecoder(r.Body).Decode(&body)
		text := `{"model":"x","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"from the provider"}}]`
		if usage := reports[body.Model]; usage != "" {
			text += `,"usage":` + usage
		}
		io.WriteString(w, text+"}")
	})
	p.use(t, named(models...))
	h := newHost(t)
	var lines []string
	for _, model := range models {
		lines = append(lines, fmt.Sprintf(askChat, model))
	}
	r := h.agent([]string{"--network=none", "--model=lie-*"}, modelAgent(lines...)...)
	if n := strings.Count(r.stdout, "200 "); n != len(lies) {
		t.Errorf("%d answers: %s%s", n, r.stdout, r.stderr)
	}
	used := map[string]agent.ModelUse{}
	for _, u := range r.record.Usage.Models {
		used[u.Model] = u
	}
	for _, lie := range lies {
		u := used["lie-"+lie.model]
		if in := u.TokensIn == lie.in || lie.in < 0 && u.TokensIn > 3 && u.TokensIn < 100; !in || u.TokensOut != lie.out || u.Calls != 1 {
			t.Errorf("%s: %+v, want %d and %d", lie.model, u, lie.in, lie.out)
		}
	}
	// A report above the budget is paid in full, and stops the next call.
	flags := []string{"--network=none", "--model=lie-*", "--budget=tokens=1000", "--at-end=refuse"}
	r = h.agent(flags, modelAgent(fmt.Sprintf(askChat, "lie-negative"), fmt.Sprintf(askChat, "lie-huge"), fmt.Sprintf(askChat, "lie-control"))...)
	if answers := strings.Split(r.stdout, "\n"); len(answers) < 3 || !strings.HasPrefix(answers[0], "200 ") || !strings.HasPrefix(answers[1], "200 ") || strings.HasPrefix(answers[2], "200 ") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

const gigabyte = 1 << 30

// consumer reads an answer to its end, and prints how long it was and how it ended.
const consumer = `
def consume(model, **more):
    request = urllib.request.Request(base + "/v1/chat/completions", json.dumps(dict({"messages": said, "model": model}, **more)).encode(), {"Content-Type": "application/json"})
    n, tail, end = 0, b"", "ended"
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            while True:
                part = answer.read1(65536)
                if not part: break
                n += len(part)
                tail = (tail + part)[-300:]
    except Exception as e: end = type(e).__name__
    print(n, end, tail.decode(errors="replace").replace("\n", " "), flush=True)
`

// An answer without an end is cut off: a stream at what its reservation allows, a document at
// a bound. The processes stay small meanwhile. The control: the provider would have sent all
// of it.
func TestAnswersWithoutAnEnd(t *testing.T) {
	p := newProvider(t)
	var written atomic.Int64
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		written.Store(0)
		part := []byte(strings.Repeat(" ", 1<<20)) // of a document
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"stream":true`) {
			w.Header().Set("Content-Type", "text/event-stream")
			part = []byte(strings.Repeat(`data: {"choices":[{"index":0,"delta":{"content":"abcdefghi"}}]}`+"\n\n", 1000)) // 3 tokens each
		}
		for written.Load() < 10*gigabyte {
			n, err := w.Write(part)
			if written.Add(int64(n)); err != nil {
				return
			}
		}
	})
	if n := readDirectly(t, p.URL, 200<<20); n != 200<<20 {
		t.Errorf("control: %d bytes", n)
	}
	p.use(t, named("small"))
	h := newHost(t)
	r := h.agent([]string{"--network=none", "--model=small", "--budget=tokens_out=2000", "--at-end=refuse"}, modelAgent(consumer, `consume("small", stream=True, max_tokens=500)`)...)
	if used := r.record.Usage.Models; len(used) != 1 || used[0].TokensOut < 500 || used[0].TokensOut > 40_000 || used[0].Failed+used[0].Over == 0 {
		t.Errorf("a stream: %+v, %s", used, r.stdout)
	}
	if n := written.Load(); n > 16<<20 || !strings.Contains(r.stdout, "longer than its budget") {
		t.Errorf("a stream: %d bytes, %s%s", n, r.stdout, r.stderr)
	}
	d := h.start([]string{"--network=none", "--model=small"}, modelAgent(consumer, `consume("small")`, "import sys", "sys.stdin.read()")...)
	if line := d.line(); strings.Contains(line, " ended ") {
		t.Errorf("a document: %s", line)
	}
	if n := written.Load(); n > 256<<20 {
		t.Errorf("a document: %d bytes were taken", n)
	}
	for _, program := range []string{"clove-models", "clove-upstream"} {
		pids := childrenNamed(t, d.cmd.Process.Pid, program)
		if len(pids) == 0 {
			t.Fatalf("no %s", program)
		}
		var kilobytes int64
		if fmt.Sscanf(procOf(pids[0]).fields(t, "VmHWM"), "%d kB", &kilobytes); kilobytes == 0 || kilobytes > 128<<10 {
			t.Errorf("%s has had %d kB", program, kilobytes)
		}
	}
	d.wait()
}

// readDirectly reads so many bytes of a provider's answer, if it has as many.
func readDirectly(t *testing.T, url string, most int64) int64 {
	t.Helper()
	answer, err := http.Post(url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	n, _ := io.CopyN(io.Discard, answer.Body, most)
	return n
}

// events is a text that would end an event and begin others, if it were sent as it is.
const events = "a\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"FORGED\"}}]}\n\ndata: [DONE]\n\nevent: error\r\n\r\nid: 7\rretry: 1\u0085\u2028"

// reader puts the texts of streams together, as clients do.
const reader = `
def pieces(text):
    for event in text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        data = [line[6:] for line in event.split("\n") if line.startswith("data: ")]
        if data and data[0] != "[DONE]": yield json.loads("\n".join(data))
def text_of(event):
    if "choices" in event: return "".join(c["delta"].get("content") or "" for c in event["choices"])
    if event["type"] == "response.output_text.delta": return event["delta"]
    return event["delta"].get("text", "") if event["type"] == "content_block_delta" else ""
def show(stream): print(json.dumps("".join(text_of(e) for e in pieces(stream))), flush=True)
for path, key in [("chat/completions", "messages"), ("responses", "input"), ("messages", "messages")]:
    for size in [1, 2, 7, 1000]:
        body = {key: [{"role": "user", "content": f"by {size}."}], "stream": True}
        if path == "messages": body["max_tokens"] = 999
        show(ask(base + "/v1/" + path, body, "small")[4:])
show(json.loads(TEXT))
`

// A text of a script that looks like events is text, in each format and in pieces of each
// size. The control: read as a stream, it has an event.
func TestTextsAreNoEvents(t *testing.T) {
	dir := t.TempDir()
	quoted, err := json.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	escaped := strings.ReplaceAll(string(quoted), "\u0085", `\u0085`) // else YAML folds it
	script := "turns:\n"
	for _, size := range []int{1, 2, 7, 1000} {
		script += fmt.Sprintf("- {match: \"by %d.\", text: %s, chunk: %d}\n", size, escaped, size)
	}
	models := "providers:\n  demo: {script: " + dir + "/script.yaml}\nmodels:\n  small: {targets: [{provider: demo}]}\n"
	for name, text := range map[string]string{"script.yaml": script, "models.yaml": models} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CLOVE_MODELS", filepath.Join(dir, "models.yaml"))
	literal, err := json.Marshal(string(quoted))
	if err != nil {
		t.Fatal(err)
	}
	r := newHost(t).agent([]string{"--network=none", "--model=small"}, modelAgent(strings.Replace(reader, "TEXT", string(literal), 1))...)
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(lines) != 13 {
		t.Fatalf("%s%s", r.stdout, r.stderr)
	}
	for i, line := range lines {
		var got string
		if err := json.Unmarshal([]byte(line), &got); err != nil || i < 12 && got != events || i == 12 && got != "FORGED" {
			t.Errorf("answer %d is %q, %v", i, got, err)
		}
	}
}

// asker has a text of its own repeated in many calls, some at once, and prints what came that
// is another's.
const asker = `
import concurrent.futures
def call(n):
    own = f"OWNER-{n}-"
    answer = ask(base + "/v1/chat/completions", {"messages": [{"role": "user", "content": own}]}, "small")
    return "" if answer.startswith("200 ") and own in answer and "OTHER" not in answer else answer
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    print("wrong:", [a for a in pool.map(call, range(200)) if a][:3], flush=True)
`

// Agents of two users share the connections to a provider. Each gets the answers to its own
// requests. The control: a connection has served both.
func TestAnswersStayWithTheirAgents(t *testing.T) {
	p := newProvider(t)
	var mu sync.Mutex // guards shared
	shared := map[string]map[string]bool{}
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		_, own, _ := strings.Cut(string(text), `"content": "`)
		own, _, _ = strings.Cut(own, `"`)
		mu.Lock()
		if shared[r.RemoteAddr] == nil {
			shared[r.RemoteAddr] = map[string]bool{}
		}
		who, _, _ := strings.Cut(own, "-")
		shared[r.RemoteAddr][who] = true
		mu.Unlock()
		io.WriteString(w, strings.Replace(answerOfProvider, "from the provider", own, 1))
	})
	file, secrets := p.configure(t)
	text, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Replace(string(text), "key: near", `key: near, users: ["*"]`, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := newClovedFor(t, groupName)
	d.settings = "models: " + file + "\nsecrets: " + secrets + "\n"
	d.again()
	agent := func(own, other string) []string {
		script := strings.NewReplacer("OWNER", own, "OTHER", other).Replace(asker)
		return append([]string{"run", "-d", "--name", own, "--network=none", "--model=small", "--"}, modelAgent(script)...)
	}
	group := []uint32{groupID}
	for _, r := range []result{d.clove(agent("roots", "members")...), d.as(memberUID, group, agent("members", "roots")...)} {
		if r.code != 0 {
			t.Fatal(r.stderr)
		}
	}
	for _, r := range []result{d.clove("logs", "-f", "roots"), d.as(memberUID, group, "logs", "-f", "members")} {
		if !strings.Contains(r.stdout, "wrong: []") {
			t.Errorf("%s%s", r.stdout, r.stderr)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	both := 0
	for _, owners := range shared {
		if len(owners) == 2 {
			both++
		}
	}
	if both == 0 || len(shared) >= 400 {
		t.Errorf("control: of %d connections, %d served both", len(shared), both)
	}
}
