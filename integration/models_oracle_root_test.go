//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// guesser asks a provider that repeats what it gets, and prints the borders of the chunks that
// come for each guess.
const guesser = `
import json, os, socket
host, port = os.environ["OPENAI_BASE_URL"].split("/")[2].split(":")
def borders(guess):
    body = json.dumps({"model": "small", "messages": [{"role": "user", "content": guess}]}).encode()
    s = socket.create_connection((host, int(port)), 60)
    s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    answer = s.makefile("rb")
    status = answer.readline().split()[1].decode()
    chunked = False
    while True:
        line = answer.readline().strip().lower()
        if not line: break
        chunked = chunked or line == b"transfer-encoding: chunked"
    sizes = []
    while chunked:
        n = int(answer.readline(), 16)
        if n == 0: break
        sizes.append(str(n)); answer.read(n + 2)
    if not chunked: sizes.append("whole %d" % len(answer.read()))
    return status + " " + "+".join(sizes)
for guess in GUESSES:
    print(borders(guess), flush=True)
`

// repeats answers with what it is sent, in two writes, as an error that costs no token.
func repeats(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []struct{ Content string }
	}
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &request) != nil || len(request.Messages) == 0 {
		return
	}
	w.WriteHeader(http.StatusBadRequest)
	for _, part := range []string{`{"error":{"message":"` + request.Messages[0].Content, `"}}`} {
		io.WriteString(w, part)
		_ = http.NewResponseController(w).Flush()
	}
}

// An agent in a sandbox sees no difference between a guess that begins the key and one that does
// not. Each guess counts as a call.
func TestGuessesAtAKeyLookTheSame(t *testing.T) {
	p := newProvider(t)
	p.answers(repeats)
	p.use(t, named("small"))
	h := newHost(t)
	var guesses []string
	for n := 8; n < len(secretKey)-1; n += 5 {
		guesses = append(guesses, secretKey[:n], secretKey[:n-1]+"#")
	}
	list, err := json.Marshal(guesses)
	if err != nil {
		t.Fatal(err)
	}
	r := h.agent([]string{"--network=none", "--model=small", fmt.Sprintf("--budget=model_calls=%d", len(guesses)), "--at-end=refuse"}, "python3", "-c", strings.Replace(guesser, "GUESSES", string(append(list[:len(list)-1], `,"one more"]`...)), 1))
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(lines) != len(guesses)+1 {
		t.Fatalf("%q, %s", lines, r.stderr)
	}
	for n := 0; n < len(guesses); n += 2 {
		if lines[n] != lines[n+1] || !strings.HasPrefix(lines[n], "400 ") {
			t.Errorf("%q is seen as %q, another guess as %q", guesses[n], lines[n], lines[n+1])
		}
	}
	if n := int(p.calls.Load()); n != len(guesses) {
		t.Errorf("%d calls reach the provider, with a budget for %d", n, len(guesses))
	}
}

// A provider that ignores the maximum of an answer does not have a run spend more than its
// budget and one token. The control: it would have sent far more.
func TestABudgetIsNotOvershot(t *testing.T) {
	p := newProvider(t)
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3000 {
			if _, err := io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"abcdefghi"}}]}`+"\n\n"); err != nil {
				return
			}
		}
	})
	if n := readDirectly(t, p.URL, 100_000); n != 100_000 {
		t.Errorf("control: %d bytes", n)
	}
	p.use(t, named("small"))
	h := newHost(t)
	for _, call := range []string{`consume("small", stream=True)`, `consume("small", stream=True, max_tokens=111)`} {
		r := h.agent([]string{"--network=none", "--model=small", "--budget=tokens=300", "--at-end=refuse"}, modelAgent(consumer, call)...)
		models := r.record.Usage.Models
		if len(models) != 1 || models[0].TokensIn+models[0].TokensOut > 301 || models[0].TokensOut < 200 || !strings.Contains(r.stdout, "longer than its budget") {
			t.Errorf("%s: %+v, %s%s", call, models, r.stdout, r.stderr)
		}
	}
}
