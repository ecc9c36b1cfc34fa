package control

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/internal/packet"
	program "clove.run/clove/models/front"
	"clove.run/clove/models/link"
	providers "clove.run/clove/models/upstream"
)

// inside is one of the two programs within the test's process.
type inside struct{ conn *packet.Conn }

// Pid implements child.
func (p inside) Pid() int { return os.Getpid() }

// Kill implements child.
func (p inside) Kill() error { return p.conn.Close() }

// Failure implements child.
func (p inside) Failure() error { return fmt.Errorf("the test ended it") }

// real has the programs' own code run in the test's process.
func (r *rig) real() {
	r.launcher.Spawn = func(executable string, _ uint32, _ *os.File, files ...*os.File) (keep.Child, error) {
		file, err := take(files[0])
		if err != nil {
			return nil, err
		}
		conn := packet.New(file)
		serve := program.New(conn).Serve
		if filepath.Base(executable) == upstreamProgram {
			setup, err := providers.ReadSetup(files[1])
			if err != nil {
				return nil, err
			}
			server, err := providers.New(conn, nil, setup)
			if err != nil {
				return nil, err
			}
			serve = server.Serve
		}
		go serve()
		return inside{conn}, nil
	}
}

const (
	chatStream = "data: {\"model\":\"theirs\",\"choices\":[{\"delta\":{\"content\":\"ready\"}}]}\n\n" +
		"data: {\"model\":\"theirs\",\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\ndata: [DONE]\n\n"
	testKey = "sk-the-key-of-the-test"
)

// provided serves models from a provider, and returns what it was asked last.
func (r *rig) provided(answer http.HandlerFunc) (asked func() string) {
	r.t.Helper()
	last := make(chan string, 16)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		last <- q.URL.Path + " " + q.Header.Get("Authorization") + " " + string(body)
		answer(w, q)
	}))
	r.t.Cleanup(web.Close)
	r.real()
	r.desk.upstreams.keys.file = func(string) (string, error) { return testKey, nil }
	r.load(strings.NewReplacer("https://p.example", web.URL, "https://c.example", web.URL, `users: ["*"]`, `plain: true, users: ["*"]`, `users: ["1000"]`, `plain: true, users: ["1000"]`).Replace(file))
	return func() string { return within(r.t, last) }
}

func stream200(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, text)
}

// A test is a call as an agent's, with the key, and from no budget.
func TestATestIsACall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	asked := r.provided(func(w http.ResponseWriter, _ *http.Request) { stream200(w, chatStream) })
	got, err := r.Test(t.Context(), "tiny")
	if err != nil || got.Failure != nil || got.Model != "small" || got.Provider != "p" || got.Target != "theirs" || got.Format != "openai-chat" || got.Status != 200 ||
		got.TokensIn != 5 || got.TokensCached != 4 || got.TokensOut != 2 || !got.Reported || got.CostMicros == nil || *got.CostMicros != 29 || got.FirstNS <= 0 || got.TotalNS < got.FirstNS {
		t.Errorf("%+v, %+v, %v", got, got.Failure, err)
	}
	path, rest, _ := strings.Cut(asked(), " ")
	if authorization, body, _ := strings.Cut(rest, " {"); path != "/v1/chat/completions" || authorization != "Bearer "+testKey || !strings.Contains(body, `"max_completion_tokens":64`) || !strings.Contains(body, `"model":"theirs"`) {
		t.Errorf("%s", rest)
	}
	if text, _ := json.Marshal(got); strings.Contains(string(text), testKey) {
		t.Errorf("%s", text)
	}
	if got, err := r.Test(t.Context(), "free"); err != nil || got.Failure != nil || got.CostMicros != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if all, open := r.ledger.reservations(); len(all) != 0 || open != 0 {
		t.Errorf("%+v", all)
	}
	if own, err := r.Test(t.Context(), "echo"); err != nil || own.Failure != nil || own.TokensOut == 0 || own.CostMicros == nil || *own.CostMicros != 0 {
		t.Errorf("%+v, %+v, %v", own, own.Failure, err)
	}
}

// The other family is asked in its own format.
func TestATestOfAnthropics(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	asked := r.provided(func(w http.ResponseWriter, _ *http.Request) {
		stream200(w, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\"haiku\",\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n"+
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	})
	got, err := r.Test(t.Context(), "haiku")
	if err != nil || got.Failure != nil || got.Format != "anthropic-messages" || got.TokensIn != 9 || got.TokensOut != 2 {
		t.Errorf("%+v, %+v, %v", got, got.Failure, err)
	}
	if q := asked(); !strings.HasPrefix(q, "/v1/messages ") || !strings.Contains(q, `"max_tokens":64`) || strings.Contains(q, "stream_options") {
		t.Errorf("%s", q)
	}
}

// Each mistake has one reason, with what to do, and the key is in none.
func TestFailedTests(t *testing.T) {
	t.Parallel()
	says := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, q *http.Request) { w.WriteHeader(status); io.WriteString(w, text) }
	}
	for name, row := range map[string]struct {
		answer        http.HandlerFunc
		reason, words string
	}{
		"a wrong key":     {says(401, `{"error": {"message": "Incorrect API key: `+testKey+`"}}`), api.FailedKey, "Incorrect API key: [key]"},
		"a closed model":  {says(403, ""), api.FailedKey, "/etc/clove/secrets/secret"},
		"no such model":   {says(404, "no\nmodel"), api.FailedName, `it says "no model"`},
		"a wrong request": {says(400, "max"), api.FailedRefused, "max"},
		"a full provider": {says(429, strings.Repeat("x", 4000)), api.FailedBusy, strings.Repeat("x", maxSaid) + `"`},
		"a redirection":   {says(302, ""), api.FailedRedirect, "is not followed"},
		"another server":  {says(200, "<html>"), api.FailedBroken, "is not one of the family openai"},
		"no answer":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, api.FailedLost, "ends the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.provided(row.answer)
			got, err := r.Test(t.Context(), "small")
			if err != nil || got.Failure == nil || got.Failure.Reason != row.reason || got.Failure.Hint == "" || !strings.Contains(got.Failure.Message+got.Failure.Hint, row.words) {
				t.Fatalf("%+v, %+v, %v", got, got.Failure, err)
			}
			if text, _ := json.Marshal(got); strings.Contains(string(text), testKey) {
				t.Errorf("%s", text)
			}
		})
	}
}

// TestTestsOfNobody: a port that nobody listens at, a certificate of nobody's, and names that
// lead nowhere.
func TestTestsOfNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provided(func(http.ResponseWriter, *http.Request) {})
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { stream200(w, chatStream) }))
	t.Cleanup(web.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	r.load(fmt.Sprintf(`
providers:
  nobody: {family: openai, url: "http://127.0.0.1:1/v1", plain: true}
  unknown: {family: openai, url: "%s/v1"}
  trusted: {family: openai, url: "%s/v1", ca: %s}
models:
  nobody: {targets: [{provider: nobody}]}
  unknown: {targets: [{provider: unknown}]}
  trusted: {targets: [{provider: trusted}]}
`, web.URL, web.URL, ca))
	for name, want := range map[string]string{"nobody": api.FailedUnreachable, "unknown": api.FailedTLS, "trusted": ""} {
		got, err := r.Test(t.Context(), name)
		reason := ""
		if got.Failure != nil {
			reason = got.Failure.Reason
		}
		if err != nil || reason != want {
			t.Errorf("%s: %+v, %v", name, got.Failure, err)
		}
	}
	if _, err := r.Test(t.Context(), "trust"); agent.KindOf(err) != agent.KindNotFound || !strings.Contains(err.Error(), "did you mean trusted?") {
		t.Errorf("%v", err)
	}
	if err := os.WriteFile(ca, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.load(fmt.Sprintf(`providers: {trusted: {family: openai, url: "%s/v1", ca: %s}}`, web.URL, ca) + "\nmodels: {trusted: {targets: [{provider: trusted}]}}")
	if _, err := r.Test(t.Context(), "trusted"); agent.KindOf(err) != agent.KindInvalid || !strings.Contains(err.Error(), "no certificate") {
		t.Errorf("%v", err)
	}
}

// A test waits for the provider's limits like a call, ends with whoever asked, and sees
// clove-upstream end.
func TestTestsThatWait(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, clove := r.started()
	if m := clove.begin(ask(1, run, "queued")); m.Go == nil {
		t.Fatalf("%+v", m.Refuse)
	}
	up := within(t, r.upstreams)
	within(t, up.up)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	test := func(name string) {
		go func() { _, err := r.Test(ctx, name); failed <- err }()
	}
	test("queued")
	r.waitsAt(ofProvider, "narrow", 1)
	cancel()
	if err := within(t, failed); err != context.Canceled {
		t.Errorf("%v", err)
	}
	ctx = t.Context()
	test("small")
	within(t, up.up)
	up.conn.Close()
	if err := within(t, failed); err == nil || !strings.Contains(err.Error(), "clove-upstream has ended") {
		t.Errorf("%v", err)
	}
	if used := within(t, r.ledger.settled); len(used) == 0 { // the agent's call, in full
		t.Errorf("%v", used)
	}
}

// Only the process that makes a call says how it ended, and once.
func TestNobodyElseEndsATest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ended := make(chan api.ModelTestResult, 1)
	go func() {
		got, _ := r.Test(t.Context(), "small")
		ended <- got
	}()
	up := within(t, r.upstreams)
	number := within(t, up.up).Call.Number
	if (&upstream{all: r.desk.upstreams}).flight(number) != nil {
		t.Error("another process ended a test")
	}
	for _, status := range []int{503, 200} {
		up.send(link.FromUpstream{Done: &link.Done{Number: number, Status: status, Total: time.Second}})
	}
	if got := within(t, ended); got.Status != 503 || got.Failure.Reason != api.FailedBusy {
		t.Errorf("%+v", got)
	}
}
