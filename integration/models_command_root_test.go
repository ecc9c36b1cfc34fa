//go:build root

package integration

import (
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

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
)

// secured writes a models.yaml with a provider over TLS, whose certificate is known or is not.
func secured(t *testing.T) {
	t.Helper()
	p := &provider{}
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+secretKey {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"not a key: %s"}}`, r.Header.Get("Authorization"))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"ready\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n")
	})
	p.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.then.Load().(http.HandlerFunc)(w, r) }))
	t.Cleanup(p.Close)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	text := fmt.Sprintf(`
providers:
  trusted: {family: openai, url: "%[1]s/v1", key: right, ca: %[2]s}
  stranger: {family: openai, url: "%[1]s/v1", key: right}
  locked: {family: openai, url: "%[1]s/v1", key: wrong, ca: %[2]s}
models:
  good: {targets: [{provider: trusted}]}
  unknown: {targets: [{provider: stranger}]}
  refused: {targets: [{provider: locked}]}
prices: [{provider: trusted, model: "*", in: 1000, out: 2000, date: 2026-11-23, source: here}]
`, p.URL, at("ca.pem"))
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
	for name, text := range map[string]string{"models.yaml": text, "ca.pem": certificate, "right": secretKey + "\n", "wrong": "sk-another-key-0123456789\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("CLOVE_MODELS", at("models.yaml"))
	t.Setenv("CLOVE_SECRETS", dir)
}

// A test of a model goes the way of an agent's call, over TLS with a private authority, with
// cloved and without. An error is one line, without a key.
func TestModelsAreTested(t *testing.T) {
	secured(t)
	for name, newOne := range map[string]func(*testing.T) *host{
		"without cloved": newHost,
		"with cloved": func(t *testing.T) *host {
			d := newCloved(t)
			d.stop(unix.SIGTERM)
			d.settings = "models: " + os.Getenv("CLOVE_MODELS") + "\nsecrets: " + os.Getenv("CLOVE_SECRETS") + "\n"
			d.serve()
			return d.host
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newOne(t)
			var result api.ModelTestResult
			r := h.clove("models", "test", "--json", "good")
			if err := json.Unmarshal([]byte(r.stdout), &result); err != nil || result.TokensIn != 9 || result.TokensOut != 2 || result.CostMicros == nil || *result.CostMicros != 13 || result.TotalNS == 0 {
				t.Errorf("%v, %s%s", err, r.stdout, r.stderr)
			}
			for model, want := range map[string]string{"unknown": "TLS with 127.0.0.1 fails", "refused": "status 401 to the key", "god": "did you mean good?"} {
				r := h.clove("models", "test", model)
				if r.code != 1 || r.stdout != "" || !strings.Contains(r.stderr, want) || strings.Contains(r.stderr, secretKey) || strings.Contains(r.stderr, "sk-another") {
					t.Errorf("%s: exit %d, %s%s", model, r.code, r.stdout, r.stderr)
				}
			}
			if r := h.clove("models", "list", "--quiet"); r.stdout != "echo\ngood\nrefused\nscripted\nunknown\n" {
				t.Errorf("%s%s", r.stdout, r.stderr)
			}
			if r := h.clove("models", "prices"); !strings.Contains(r.stdout, "trusted") || !strings.Contains(r.stdout, "api.openai.com") {
				t.Errorf("%s%s", r.stdout, r.stderr)
			}
		})
	}
}

// While an agent calls, it is among those that use models. Another user does not see it, nor
// the models that are root's.
func TestWhoUsesModels(t *testing.T) {
	p := newProvider(t)
	file, secrets := p.configure(t)
	asked, answer := make(chan bool, 1), make(chan bool)
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		asked <- true
		<-answer
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answerOfProvider)
	})
	d := newClovedFor(t, groupName)
	d.stop(unix.SIGTERM)
	d.settings = "models: " + file + "\nsecrets: " + secrets + "\n"
	d.serve()
	r := d.start([]string{"--network=none", "--model=small", "--name=caller"}, modelAgent(fmt.Sprintf(askChat, "small"))...)
	<-asked
	top := func() (runs []api.ModelRun) {
		t.Helper()
		if err := json.Unmarshal([]byte(d.clove("models", "top", "--json").stdout), &runs); err != nil {
			t.Fatal(err)
		}
		return runs
	}
	if runs := top(); len(runs) != 1 || runs[0].Name != "caller" || runs[0].InFlight != 1 || runs[0].Calls != 0 || strings.Join(runs[0].Models, " ") != "small" {
		t.Errorf("%+v", runs)
	}
	const ask = `{"jsonrpc":"2.0","id":1,"method":"model.%s"}` + "\n"
	if seen := d.raw(memberUID, fmt.Sprintf(ask, "top")); !strings.Contains(seen, `"runs":[]`) {
		t.Errorf("another user sees %s", seen)
	}
	if seen := d.raw(memberUID, fmt.Sprintf(ask, "list")); strings.Contains(seen, "small") || !strings.Contains(seen, `"echo"`) {
		t.Errorf("another user sees %s", seen)
	}
	close(answer)
	if end := r.wait(); end.code != 0 {
		t.Errorf("%s", end.stderr)
	}
	until(t, "nothing is in flight", func() bool { return len(top()) == 0 })
}
