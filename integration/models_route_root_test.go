//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// routes writes a models.yaml in which small has a target at each of the providers, in their
// order, and returns the file.
func routes(t *testing.T, more string, urls ...string) string {
	t.Helper()
	providers, targets, prices := "", []string{}, ""
	for i, url := range urls {
		providers += fmt.Sprintf("  p%d: {family: openai, url: %s/v1, plain: true%s}\n", i, url, more)
		targets = append(targets, fmt.Sprintf("{provider: p%d, model: small-%d, fallback: %d}", i, i, i))
		prices += fmt.Sprintf("- {provider: p%d, model: small-%d, in: 1000, out: 2000, date: 2026-01-01, source: here}\n", i, i)
	}
	file := filepath.Join(t.TempDir(), "models.yaml")
	text := "providers:\n" + providers + "models:\n  small: {targets: [" + strings.Join(targets, ", ") + "]}\nprices:\n" + prices
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A call whose first target is overloaded, and whose second cannot be reached, is answered by
// the third: once, and paid once. The control has the first alone.
func TestACallIsAnsweredByAnotherTarget(t *testing.T) {
	busy, well := newProvider(t), newProvider(t)
	busy.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "9")
		w.WriteHeader(529)
		io.WriteString(w, `{"error":{"message":"overloaded"}}`)
	})
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	flags := []string{"--network=none", "--model=small", "--budget=cost=1usd"}
	h := newHost(t)
	t.Setenv("CLOVE_MODELS", routes(t, "", busy.URL))
	if r := h.agent(flags, modelAgent(fmt.Sprintf(askChat, "small"))...); !strings.HasPrefix(r.stdout, "529 ") || !strings.Contains(r.stdout, "overloaded") {
		t.Errorf("control: %s%s", r.stdout, r.stderr)
	}
	t.Setenv("CLOVE_MODELS", routes(t, "", busy.URL, closed.URL, well.URL))
	r := h.agent(flags, modelAgent(fmt.Sprintf(askChat, "small"))...)
	if !strings.HasPrefix(r.stdout, "200 ") || strings.Count(r.stdout, "from the provider") != 1 || busy.calls.Load() != 2 || well.calls.Load() != 1 {
		t.Errorf("%d and %d calls: %s%s", busy.calls.Load(), well.calls.Load(), r.stdout, r.stderr)
	}
	if used := r.record.Usage.Models; len(used) != 1 || used[0] != (agent.ModelUse{Model: "small", Calls: 1, TokensIn: 7, TokensOut: 5, CostMicros: 17}) {
		t.Errorf("the record has %+v", used)
	}
}

// queueScript makes two calls at once, and prints what waits as soon as one does.
const queueScript = `
import socket, threading
def queue():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ["CLOVE_AGENT_SOCKET"])
        s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"model.queue","params":{}}\n')
        return json.loads(s.makefile().readline())["result"]
calls = [threading.Thread(target=lambda: ask(base + "/v1/chat/completions", {"messages": said}, "small")) for _ in range(2)]
for c in calls: c.start()
now = queue()
while not now["calls"]: now = queue()
print(json.dumps(now), flush=True)
for c in calls: c.join()
print(json.dumps(queue()), flush=True)
`

// An agent is told which of its calls waits, with and without cloved.
func TestAnAgentSeesItsCallsThatWait(t *testing.T) {
	for _, cloved := range []bool{false, true} {
		p, release := newProvider(t), make(chan bool, 2)
		p.answers(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			io.WriteString(w, answerOfProvider)
		})
		file := routes(t, ", limits: {concurrency: 1}", p.URL)
		t.Setenv("CLOVE_MODELS", file)
		var h *host
		if cloved {
			d := newCloved(t)
			d.stop(unix.SIGTERM)
			d.settings = "models: " + file + "\n"
			d.serve()
			h = d.host
		} else {
			h = newHost(t)
		}
		r := h.start([]string{"--network=none", "--model=small"}, "python3", "-uc", askScript+queueScript)
		read := func() (q api.ModelQueueResult) {
			t.Helper()
			line, err := r.stdout.ReadString('\n')
			if err == nil {
				err = json.Unmarshal([]byte(line), &q)
			}
			if err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			return q
		}
		if q := read(); len(q.Calls) != 1 || q.Calls[0].Position != 1 || q.Calls[0].Limit != "provider" || q.Calls[0].Model != "small" || q.Calls[0].ExpectedMS != nil {
			t.Errorf("with cloved %t: %+v", cloved, q)
		}
		release <- true
		release <- true
		if q := read(); len(q.Calls) != 0 {
			t.Errorf("with cloved %t: %+v", cloved, q)
		}
		if end := r.wait(); end.record.Status != agent.StatusExited || p.calls.Load() != 2 {
			t.Errorf("with cloved %t: %s, %d calls, %s", cloved, end.record.Status, p.calls.Load(), end.stderr)
		}
	}
}
