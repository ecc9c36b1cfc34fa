//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// A call is counted, and an event with its figures, which the run's page shows.
func TestACallOfAModelIsSeen(t *testing.T) {
	p, address := newProvider(t), freeAddress(t)
	d := p.serves(t, "metrics_address: "+address+"\n")
	r := d.clove(append([]string{"run", "--network=none", "--model=small", "--name=caller", "--"}, modelAgent(fmt.Sprintf(askChat, "small"), fmt.Sprintf(askChat, "none"))...)...)
	if !strings.Contains(r.stdout, "from the provider") {
		t.Fatalf("%s%s", r.stdout, r.stderr)
	}
	wantMetrics(t, address, `clove_model_calls_total{model="small",outcome="ok",provider="near"} 1`, `clove_model_calls_total{model="unknown",outcome="refused",provider="unknown"} 1`,
		`clove_model_tokens_total{kind="out",model="small",provider="near"} 5`, `clove_model_refusals_total{reason="unknown-model"} 1`, `clove_model_calls_in_flight{provider="near"} 0`,
		`gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="openai",gen_ai_request_model="small-1",gen_ai_token_type="input"} 7`)
	called := []agent.RunEvent{}
	for events := d.follow("events", "--json", "--since", "5m", "--run", "caller"); len(called) < 2; {
		var e agent.RunEvent
		if err := json.Unmarshal([]byte(events.line()), &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == agent.RunModelCalled {
			called = append(called, e)
		}
	}
	// The agent has its answer before the call is settled, so the refusal of the next one may come first.
	slices.SortFunc(called, func(a, b agent.RunEvent) int { return strings.Compare(b.Detail, a.Detail) })
	if !strings.HasPrefix(called[0].Detail, "small at near: ok status=200 tokens_in=7 tokens_cached=0 tokens_out=5 cost_micros=17 wait_ms=") || called[1].Detail != "refused reason=unknown-model" {
		t.Fatalf("%+v", called)
	}
	if page := d.ok("show", "caller"); !strings.Contains(page, "small at near: ok status=200") {
		t.Error(page)
	}
	if records := d.ok("audit", "query", "--run", string(called[0].ID), "--json"); strings.Count(records, `"correlation":"`+called[0].Correlation+`"`) != 2 {
		t.Errorf("the call and its payment are not found by %s:\n%s", called[0].Correlation, records)
	}
}

// askPlanted asks with a text that stands in no command line.
const askPlanted = `print(ask(base + "/v1/chat/completions", {"messages": [{"role": "user", "content": "-".join(["planted", "question"])}]}, "small")[:4])`

// The texts of a call and its answer are stored nowhere. The control: with --model-log they are in one
// file, without the key, until the run is removed.
func TestContentsAreKeptOnlyWhereAsked(t *testing.T) {
	p := newProvider(t)
	p.answers(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, strings.Replace(answerOfProvider, "from the provider", "planted-answer of "+secretKey, 1))
	})
	file, secrets := p.configure(t)
	t.Setenv("CLOVE_MODELS", file)
	t.Setenv("CLOVE_SECRETS", secrets)
	t.Run("without cloved", func(t *testing.T) { contentsAreKeptWhereAsked(t, newHost(t)) })
	d := p.serves(t, "log_level: debug\n")
	t.Run("with cloved", func(t *testing.T) {
		contentsAreKeptWhereAsked(t, d.host)
		out := d.ok("logs", "--models", "kept")
		if !strings.Contains(out, "planted-question") || !strings.Contains(out, "planted-answer of [key]") {
			t.Error(out)
		}
		if r := d.clove("logs", "--models", "quiet"); r.code == 0 || !strings.Contains(r.stderr, "--model-log") {
			t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
		}
		d.ok("rm", "kept")
		wantContents(t, d.host, nil)
	})
}

func contentsAreKeptWhereAsked(t *testing.T, h *host) {
	for _, name := range []string{"quiet", "kept"} {
		flags := []string{"--network=none", "--model=small", "--name=" + name}
		if name == "kept" {
			wantContents(t, h, nil)
			flags = append(flags, "--model-log")
		}
		result := h.recordFile()
		args := append(append([]string{"run", "--result", result}, flags...), "--") // without --rm, which removes the log
		r := h.clove(append(args, modelAgent(askPlanted)...)...)
		if r.stdout != "200 \n" {
			t.Fatalf("%s%s", r.stdout, r.stderr)
		}
		if name == "kept" {
			wantContents(t, h, []string{filepath.Join(h.state, "logs", string(readRecord(t, result).ID), "models", "log")})
		}
	}
}

// wantContents checks in which files the texts of calls are, that only root reads them, and
// that the key is in none.
func wantContents(t *testing.T, h *host, files []string) {
	t.Helper()
	for text, want := range map[string][]string{"planted-question": files, "planted-answer": files, secretKey: nil} {
		found := append(filesWith(t, h.state, text), filesWith(t, h.run, text)...)
		if fmt.Sprint(found) != fmt.Sprint(want) {
			t.Errorf("%q is in %v, want %v", text, found, want)
		}
	}
	for _, path := range files {
		for path, mode := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): os.ModeDir | 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode() != mode {
				t.Errorf("%v, %v", info, err)
			}
		}
	}
}
