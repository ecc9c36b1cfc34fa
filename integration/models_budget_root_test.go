//go:build root

package integration

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// callsAtOnce sends so many requests without a maximum before it reads an answer, and prints the
// status of each.
const callsAtOnce = `
import socket
def post(body):
    s = socket.create_connection(("127.0.0.1", 8411))
    text = json.dumps(body)
    s.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(text)}\r\n\r\n{text}".encode())
    return s
def at_once(count):
    all = [post({"model": "small", "messages": said}) for _ in range(count)]
    print("sent", flush=True)
    print(*[s.makefile("rb").readline().split()[1].decode() for s in all], flush=True)
`

// serves starts cloved with the models of the provider, and more lines of its configuration.
func (p *provider) serves(t *testing.T, more ...string) *cloved {
	file, secrets := p.configure(t)
	d := newCloved(t)
	d.stop(unix.SIGTERM)
	d.settings = "models: " + file + "\nsecrets: " + secrets + "\n" + strings.Join(more, "")
	d.serve()
	return d
}

// Calls without a maximum at the same time are made one after the other where the budget has
// room for one, and --at-end does not follow. The control is a call that does not fit beside
// what is used.
func TestCallsAtOnceWaitForEachOther(t *testing.T) {
	p := newProvider(t)
	release := make(chan struct{})
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		<-release
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answerOfProvider)
	})
	d := p.serves(t)
	r := d.start([]string{"--network=none", "--model=small", "--budget=tokens=1000", "--at-end=end"}, modelAgent(callsAtOnce, "at_once(4)",
		`print(ask(base + "/v1/chat/completions", {"messages": said, "max_tokens": 1000}, "small"))`)...)
	if line, err := r.stdout.ReadString('\n'); err != nil || line != "sent\n" {
		t.Fatalf("%q, %v", line, err)
	}
	close(release)
	if line, err := r.stdout.ReadString('\n'); err != nil || line != "200 200 200 200\n" {
		t.Errorf("%q, %v", line, err)
	}
	end := r.wait()
	if used := end.record.Usage.Models; len(used) != 1 || used[0].Calls != 4 || used[0].Failed != 0 {
		t.Errorf("the record has %+v", used)
	}
	if end.record.Status != agent.StatusBudget || strings.Contains(end.stdout, "200 ") {
		t.Errorf("control: %s, %s%s", end.record.Status, end.stdout, end.stderr)
	}
}

// A user's budget at a provider holds over runs and over a restart of cloved, and ends
// no run. Without cloved nothing could count it. The control is the first call.
func TestAUsersBudgetAtAProviderHolds(t *testing.T) {
	p := newProvider(t)
	p.more = ", budgets: {0: [model_calls=1/month]}"
	d := p.serves(t)
	flags := []string{"--network=none", "--model=small"}
	ask := modelAgent(fmt.Sprintf(askChat, "small"), `print("goes on")`)
	if r := d.agent(flags, ask...); !strings.HasPrefix(r.stdout, "200 ") {
		t.Fatalf("control: %s%s", r.stdout, r.stderr)
	}
	d.stop(unix.SIGTERM)
	d.serve()
	if r := d.agent(flags, ask...); strings.HasPrefix(r.stdout, "200 ") || !strings.Contains(r.stdout, "0/provider:near") || !strings.HasSuffix(r.stdout, "goes on\n") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	if list := d.clove("budget", "list"); !strings.Contains(list.stdout, "0/provider:near") {
		t.Errorf("%s%s", list.stdout, list.stderr)
	}
	file, secrets := p.configure(t)
	t.Setenv("CLOVE_MODELS", file)
	t.Setenv("CLOVE_SECRETS", secrets)
	if r := newHost(t).agent(flags, ask...); strings.HasPrefix(r.stdout, "200 ") || !strings.Contains(r.stdout, "cloved") {
		t.Errorf("without cloved: %s%s", r.stdout, r.stderr)
	}
	if got := p.calls.Load(); got != 1 {
		t.Errorf("the provider had %d calls", got)
	}
}
