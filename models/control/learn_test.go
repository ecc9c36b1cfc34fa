package control

import (
	"testing"
	"time"

	"clove.run/clove/models/link"
	"clove.run/clove/models/queue"
)

// limitedFile has a model without limits, one whose provider has them, and one with its own.
const limitedFile = `
providers:
  p: {family: openai, url: "https://p.example/v1", users: ["*"]}
  limited: {family: openai, url: "https://q.example/v1", users: ["*"], limits: {requests_per_minute: 2, tokens_per_minute: 500}}
models:
  small: {targets: [{provider: p, model: theirs}]}
  queued: {targets: [{provider: limited, model: theirs}]}
  free: {targets: [{provider: p, model: other}], limits: {requests_per_minute: 1000}}
`

// waitsAt returns when so many calls wait at a gate.
func (r *rig) waitsAt(kind, name string, calls int) {
	r.t.Helper()
	at := r.desk.limits.of(kind, name)
	for deadline := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		at.mu.Lock()
		n := at.queue.Waiting()
		at.mu.Unlock()
		if n == calls {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d calls wait at the %s, not %d", n, kind, calls)
		}
	}
}

// A limit that a provider names bounds the calls to that target, and no other. Without an answer
// that repeats it, it lapses, and what waited goes.
func TestALearnedLimit(t *testing.T) {
	t.Parallel()
	s := newSeveral(t, limitedFile)
	limited := answered
	limited.Limits = link.Limits{Requests: 1}
	s.begin()
	s.begin() // the control: nothing limits two
	s.ends(limited)
	within(t, s.ledger.settled)
	s.begin() // the one of this minute
	b := ask(100, s.run, "small")
	s.front.send(link.FromFront{Begin: &b})
	s.waitsAt(ofTarget, "p theirs", 1)
	if m := s.front.begin(ask(101, s.run, "free")); m.Go == nil {
		t.Errorf("another model of the provider: %+v", m.Refuse)
	}
	within(t, s.up.up)
	s.desk.limits.of(ofTarget, "p theirs").unlearn() // as a minute later
	if m := within(t, s.front.front); m.Go == nil || m.Go.Number != 100 {
		t.Errorf("%+v", m)
	}
}

// What is configured holds, whatever a provider says: not less, and not more.
func TestALearnedLimitChangesNoConfiguredOne(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		model string
		says  link.Limits
		want  queue.Limits // learned
	}{
		"control":               {"small", link.Limits{Requests: 7, Tokens: 8}, queue.Limits{RequestsPerMinute: 7, TokensPerMinute: 8}},
		"the provider's, less":  {"queued", link.Limits{Requests: 1, Tokens: 1}, queue.Limits{}},
		"the provider's, more":  {"queued", link.Limits{Requests: 1000, Tokens: 100_000}, queue.Limits{}},
		"the model's, and none": {"free", link.Limits{Requests: 1, Tokens: 9}, queue.Limits{TokensPerMinute: 9}},
	} {
		s := newSeveral(t, limitedFile)
		s.number++
		b := ask(s.number, s.run, row.model)
		s.front.send(link.FromFront{Begin: &b})
		s.goes()
		end := answered
		end.Limits = row.says
		target := *s.call
		s.ends(end)
		within(t, s.ledger.settled)
		model := map[string]string{"small": "theirs", "queued": "theirs", "free": "other"}[row.model]
		if got := s.desk.limits.of(ofTarget, target.Provider+" "+model).queue.Limits(); got != row.want {
			t.Errorf("%s: %+v", name, got)
		}
		if got := s.desk.limits.of(ofProvider, "limited").queue.Limits(); row.model == "queued" && got != (queue.Limits{RequestsPerMinute: 2, TokensPerMinute: 500}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
