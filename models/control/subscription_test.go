package control

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// subscriptions is the configuration of these tests.
const subscriptions = `
providers:
  p: {family: openai, url: "https://p.example/v1", key: secret, users: ["*"]}
  codex: {family: openai, url: "https://c.example/codex", key: token, subscription: codex, account: acc-1, users: ["*"]}
models:
  small: {targets: [{provider: p, model: theirs}]}
  free: {targets: [{provider: codex, model: theirs}]}
`

// askResponses is a request of a client with headers.
func askResponses(number uint64, run agent.Run, model string) link.Begin {
	b := ask(number, run, model)
	b.Format, b.N, b.Headers = models.OpenAIResponses, 1, map[string]string{"User-Agent": "codex", "Session-Id": "1"}
	return b
}

// Headers go on where the target is a subscription's, and the maximum where it takes one.
func TestHeadersGoToASubscription(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.load(subscriptions)
	run, front := r.started()
	m := front.begin(askResponses(1, run, "free"))
	if m.Go == nil || m.Go.Out != 0 || !strings.Contains(m.Go.Renew, "codex login makes one") || !strings.Contains(m.Go.Renew, "/etc/clove/secrets/token") {
		t.Fatalf("%+v, %+v", m.Go, m.Refuse)
	}
	up := within(t, r.upstreams)
	if call := within(t, up.up).Call; fmt.Sprint(call.Headers) != "map[Session-Id:1 User-Agent:codex]" || call.MostOut != 50 {
		t.Errorf("%+v", call)
	}
	if p := up.setup.Providers["codex"]; p.Subscription != "codex" || p.Account != "acc-1" || p.Key != "the key token" || len(p.Endpoints) != 1 {
		t.Errorf("%+v", p)
	}
	if m := front.begin(askResponses(2, run, "small")); m.Go == nil || m.Go.Out != 50 || m.Go.Renew != "" {
		t.Fatalf("control: %+v, %+v", m.Go, m.Refuse)
	}
	if call := within(t, up.up).Call; call.Headers != nil {
		t.Errorf("%+v", call)
	}
	if m := front.begin(ask(3, run, "free")); m.Refuse == nil || m.Refuse.Reason != link.ReasonUnknown || !strings.Contains(m.Refuse.Message, "does not speak openai-chat") {
		t.Errorf("%+v", m)
	}
}

// What no honest clove-models says of headers reaches no other process.
func TestHeadersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.load(subscriptions)
	run, front := r.started()
	for i, headers := range []map[string]string{{"Authorization": "x"}, {"User-Agent": "a\r\nb: c"}, {"Session-Id": strings.Repeat("x", 65)}, {"X-App": "cli"}} {
		b := askResponses(uint64(i+1), run, "free")
		b.Headers = headers
		if m := front.begin(b); m.Refuse == nil || m.Refuse.Message != senseless {
			t.Errorf("%v: %+v", headers, m)
		}
	}
}

// A budget of money refuses a subscription without a price.
func TestMoneyAndASubscription(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.load(subscriptions)
	run, front := r.started()
	r.ledger.mu.Lock()
	r.ledger.limits["cost_micros"] = 1_000_000
	r.ledger.mu.Unlock()
	if m := front.begin(askResponses(1, run, "free")); m.Refuse == nil || m.Refuse.Reason != link.ReasonNoPrice {
		t.Errorf("%+v", m)
	}
	r.load(subscriptions + "prices: [{provider: codex, model: '*', in: 0, out: 0, date: 2026-11-27, source: paid by the month}]\n")
	if m := front.begin(askResponses(2, run, "free")); m.Go == nil {
		t.Errorf("control: %+v", m.Refuse)
	}
}

// A key that has changed is used by the next call. While its file cannot be read, the last one is.
func TestAKeyThatHasChanged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.load(subscriptions)
	var key atomic.Value
	key.Store("first")
	r.desk.upstreams.keys.file = func(string) (string, error) {
		if k := key.Load().(string); k != "" {
			return k, nil
		}
		return "", errors.New("it is being written")
	}
	run, front := r.started()
	calls := uint64(0)
	call := func() {
		t.Helper()
		calls++
		if m := front.begin(askResponses(calls, run, "free")); m.Go == nil {
			t.Fatalf("%+v", m)
		}
	}
	call()
	first := within(t, r.upstreams)
	within(t, first.up)
	key.Store("")
	call()
	within(t, first.up)
	key.Store("first")
	call()
	within(t, first.up)
	key.Store("second")
	call()
	second := within(t, r.upstreams)
	within(t, second.up)
	if a, b := first.setup.Providers["codex"].Key, second.setup.Providers["codex"].Key; a != "first" || b != "second" {
		t.Errorf("%q, %q", a, b)
	}
}

// A test of Codex's service is a request that it takes, and says what to do about a token that it
// does not accept.
func TestATestOfASubscription(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var status atomic.Int64
	status.Store(http.StatusOK)
	asked := r.provided(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		code := int(status.Load())
		w.WriteHeader(code)
		if code == http.StatusOK {
			io.WriteString(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"usage\":{\"input_tokens\":9,\"output_tokens\":2}}}\n\n")
		}
	})
	web := r.config.Load().Providers["p"].URL
	r.load(strings.NewReplacer("https://c.example", strings.TrimSuffix(web, "/v1"), "account:", "plain: true, account:").Replace(subscriptions))
	got, err := r.Test(t.Context(), "free")
	if err != nil || got.Failure != nil || got.Format != "openai-responses" || got.TokensIn != 9 || got.TokensOut != 2 || got.CostMicros != nil {
		t.Errorf("%+v, %+v, %v", got, got.Failure, err)
	}
	q := asked()
	if !strings.HasPrefix(q, "/codex/responses Bearer "+testKey) || !strings.Contains(q, `"store":false`) || !strings.Contains(q, `"instructions":`) || !strings.Contains(q, `"input":[`) || strings.Contains(q, "max_") {
		t.Error(q)
	}
	for code, want := range map[int][2]string{401: {api.FailedKey, "write a new token (codex login makes one"}, 403: {api.FailedKey, "/etc/clove/secrets/token"}, 400: {api.FailedRefused, "try codex itself in a run"}} {
		status.Store(int64(code))
		got, err := r.Test(t.Context(), "free")
		if err != nil || got.Failure == nil || got.Failure.Reason != want[0] || !strings.Contains(got.Failure.Hint, want[1]) {
			t.Errorf("%d: %+v, %+v, %v", code, got, got.Failure, err)
		}
		asked()
	}
}
