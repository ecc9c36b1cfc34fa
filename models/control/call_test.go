package control

import (
	"fmt"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// ask is a whole request of a run.
func ask(number uint64, run agent.Run, model string) link.Begin {
	return link.Begin{Number: number, Run: run.Spec.ID, Format: models.OpenAIChat, Model: model, In: 100, Out: 50, N: 2}
}

// started serves a run of user 1000, and returns its clove-models, which knows it.
func (r *rig) started() (agent.Run, *fake) {
	r.t.Helper()
	run := r.serve(1000)
	front := within(r.t, r.fronts)
	if m := within(r.t, front.front); m.Serve == nil || m.Serve.Run != run.Spec.ID {
		r.t.Fatalf("%+v", m)
	}
	return run, front
}

func TestACallIsReservedMadeAndSettled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	b := ask(7, run, "tiny")
	b.Tiers, b.Betas = []string{"service_tier=priority"}, []string{"effort-2025-11-24"}
	if m := front.begin(b); m.Go == nil || m.Go.Number != 7 || m.Go.Model != "theirs" || m.Go.Out != 50 || m.Go.Granted != nil {
		t.Fatalf("%+v", m)
	}
	up := within(t, r.upstreams)
	call := within(t, up.up).Call
	if call.Provider != "p" || call.In != 200 || call.MostOut != 100 || fmt.Sprint(call.Betas) != "[effort-2025-11-24]" || up.setup.Providers["p"].Key != "the key secret" {
		t.Errorf("%+v", call)
	}
	// In times the factor, out times n, at the highest rate of input and the tier.
	all, _ := r.ledger.reservations()
	want := budget.Amounts{budget.ModelCalls: 1, budget.TokensIn: 200, budget.TokensOut: 100, budget.CostMicros: 2 * (200*5 + 100*10)}
	if len(all) != 1 || fmt.Sprint(all[0].amounts) != fmt.Sprint(want) || all[0].What != "model:small" {
		t.Errorf("%+v, want %v", all, want)
	}
	done := link.Done{Number: call.Number, Status: 200, Sent: true, Usage: models.Usage{In: 10, Cached: 5, CacheWrite: 4, CacheWriteLong: 3, Out: 20}, Tiers: []string{"service_tier=priority"}}
	up.send(link.FromUpstream{Done: &done})
	used := within(t, r.ledger.settled)
	want = budget.Amounts{budget.ModelCalls: 1, budget.TokensIn: 14, budget.TokensCached: 5, budget.TokensOut: 20, budget.CostMicros: 2 * (10 + 5 + 1 + 3*5 + 20*10)}
	if fmt.Sprint(used) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", used, want)
	}
	for range 2 { // nothing is settled again
		up.send(link.FromUpstream{Done: &done})
		up.send(link.FromUpstream{Done: &link.Done{Number: 99, Status: 200, Sent: true}})
	}
	front.begin(ask(7, run, "small")) // the number is free again, and what was sent before is read
	if len(r.ledger.settled) != 0 {
		t.Error("a call was settled twice")
	}
	if u := r.used(); len(u) != 1 || u[0].Calls != 1 || u[0].Failed != 0 || u[0].TokensOut != 20 || u[0].CostMicros != want[budget.CostMicros] {
		t.Errorf("%+v", u)
	}
}

// A clove-models speaks for the runs of its own owner only.
func TestRunsOfAnotherOwner(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	other := r.serve(2000)
	second := within(t, r.fronts)
	within(t, second.front)
	for _, b := range []link.Begin{ask(1, other, "small"), ask(1, agent.Run{}, "small"), ask(1, agent.Run{Spec: agent.Spec{ID: "none"}}, "small")} {
		if m := front.begin(b); m.Refuse == nil || m.Refuse.Reason != link.ReasonFailed || m.Refuse.Number != 1 {
			t.Errorf("%+v", m)
		}
	}
	front.send(link.FromFront{List: &link.List{Number: 2, Run: other.Spec.ID}})
	if m := within(t, front.front); m.Names == nil || len(m.Names.Names) != 0 {
		t.Errorf("%+v", m.Names)
	}
	front.send(link.FromFront{List: &link.List{Number: 3, Run: run.Spec.ID}})
	if m := within(t, front.front); m.Names == nil || fmt.Sprint(m.Names.Names) != "[echo free haiku metered queued small]" {
		t.Errorf("control: %+v", m.Names)
	}
	for model, want := range map[string]string{"haiku": "[anthropic-messages anthropic-count]", "small": "[openai-chat openai-responses]", "nothing": "[]"} {
		front.send(link.FromFront{List: &link.List{Number: 4, Run: run.Spec.ID, Model: model}})
		if m := within(t, front.front); m.Names == nil || fmt.Sprint(m.Names.Formats) != want {
			t.Errorf("%s: %+v", model, m.Names)
		}
	}
	front.send(link.FromFront{List: &link.List{Number: 5, Run: other.Spec.ID, Model: "small"}})
	if m := within(t, front.front); m.Names == nil || m.Names.Formats != nil {
		t.Errorf("another owner's: %+v", m.Names)
	}
	if m := front.begin(ask(4, run, "small")); m.Go == nil {
		t.Errorf("control: %+v", m)
	}
	if all, _ := r.ledger.reservations(); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// A number that is in use is not used again: the second call is not made.
func TestNumbersAreNotReused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	if m := front.begin(ask(1, run, "small")); m.Go == nil {
		t.Fatalf("%+v", m)
	}
	for range 3 {
		b := ask(1, run, "small")
		front.send(link.FromFront{Begin: &b})
	}
	if m := front.begin(ask(2, run, "small")); m.Go == nil || m.Go.Number != 2 {
		t.Errorf("%+v", m)
	}
	if all, open := r.ledger.reservations(); len(all) != 2 || open != 2 {
		t.Errorf("%d reservations, %d open", len(all), open)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	change := func(b link.Begin, f func(*link.Begin)) link.Begin { f(&b); return b }
	for name, row := range map[string]struct {
		begin  link.Begin
		free   int64 // of money; 0: no budget
		reason link.Reason
	}{
		"no such model":     {ask(1, run, "smal"), 0, link.ReasonUnknown},
		"another family":    {change(ask(1, run, "small"), func(b *link.Begin) { b.Format = models.AnthropicMessages }), 0, link.ReasonUnknown},
		"no grant":          {ask(1, run, "scripted"), 0, link.ReasonNotGranted},
		"a longer context":  {change(ask(1, run, "small"), func(b *link.Begin) { b.In = 10_001 }), 0, link.ReasonContext},
		"no price":          {ask(1, run, "free"), 1000, link.ReasonNoPrice},
		"too dear":          {ask(1, run, "small"), 1999, link.ReasonBudget},
		"a need":            {change(ask(1, run, "small"), func(b *link.Begin) { b.Needs = []models.Need{models.ProviderTools} }), 0, link.ReasonNeed},
		"a need of no kind": {change(ask(1, run, "small"), func(b *link.Begin) { b.Needs = []models.Need{"x"} }), 0, link.ReasonFailed},
		"negative input":    {change(ask(1, run, "small"), func(b *link.Begin) { b.In = -1 }), 0, link.ReasonFailed},
		"negative output":   {change(ask(1, run, "small"), func(b *link.Begin) { b.Out = -1 }), 0, link.ReasonFailed},
		"huge input":        {change(ask(1, run, "small"), func(b *link.Begin) { b.In = 1 << 62 }), 0, link.ReasonFailed},
		"no answers":        {change(ask(1, run, "small"), func(b *link.Begin) { b.N = 0 }), 0, link.ReasonFailed},
		"many answers":      {change(ask(1, run, "small"), func(b *link.Begin) { b.N = 1 << 40 }), 0, link.ReasonFailed},
		"no format":         {change(ask(1, run, "small"), func(b *link.Begin) { b.Format = "x" }), 0, link.ReasonFailed},
		"a line in a beta":  {change(ask(1, run, "small"), func(b *link.Begin) { b.Betas = []string{"a\r\nX-Api-Key: 1"} }), 0, link.ReasonFailed},
		"a line in a tier":  {change(ask(1, run, "small"), func(b *link.Begin) { b.Tiers = []string{"a\nb"} }), 0, link.ReasonFailed},
		"no traceparent":    {change(ask(1, run, "small"), func(b *link.Begin) { b.Trace = "00-zz" }), 0, link.ReasonFailed},
		"many betas":        {change(ask(1, run, "small"), func(b *link.Begin) { b.Betas = strings.Split(strings.Repeat("a ", 40), " ")[:40] }), 0, link.ReasonFailed},
	} {
		r.ledger.mu.Lock()
		delete(r.ledger.limits, budget.CostMicros)
		if row.free > 0 {
			r.ledger.limits[budget.CostMicros] = row.free
		}
		r.ledger.mu.Unlock()
		if m := front.begin(row.begin); m.Refuse == nil || m.Refuse.Reason != row.reason || m.Refuse.Message == "" {
			t.Errorf("%s: %+v, %+v", name, m.Refuse, m.Go)
		}
	}
	if all, _ := r.ledger.reservations(); len(all) != 0 || len(r.upstreams) != 0 {
		t.Errorf("%+v", all)
	}
}

// What a provider does beside an answer needs rights of the grant, each its own.
func TestNeeds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	tools, state := "model:small:provider-tools", "model:small:provider-state"
	for i, row := range []struct {
		grants, needs string
		granted       string // "": refused
	}{
		{"", "", "[]"}, {"", "provider-tools", ""}, {tools, "provider-tools", "[provider-tools]"}, {tools, "provider-state", ""}, {tools, "", "[provider-tools]"},
		{state, "provider-state", "[provider-state]"}, {state, "provider-tools provider-state", ""}, {tools + " " + state, "provider-tools provider-state", "[provider-tools provider-state]"},
	} {
		r.ledger.mu.Lock()
		for _, what := range []string{tools, state} {
			r.ledger.grants[what] = strings.Contains(row.grants, what)
		}
		r.ledger.mu.Unlock()
		b := ask(uint64(i), run, "small")
		for _, need := range strings.Fields(row.needs) {
			b.Needs = append(b.Needs, models.Need(need))
		}
		m := front.begin(b)
		if row.granted == "" {
			if m.Refuse == nil || m.Refuse.Reason != link.ReasonNeed || !strings.Contains(m.Refuse.Hint, "model:small:") {
				t.Errorf("%+v: %+v", row, m)
			}
			continue
		}
		if m.Go == nil || fmt.Sprint(m.Go.Granted) != row.granted {
			t.Errorf("%+v: %+v, %+v", row, m.Go, m.Refuse)
		}
	}
}

// Without a maximum in the request, what is left of the budgets is written into it.
func TestTheMaximumIsWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		free budget.Amounts
		out  int64
	}{
		"no budget":        {nil, 500},
		"tokens of output": {budget.Amounts{budget.TokensOut: 21}, 10},
		"tokens":           {budget.Amounts{budget.Tokens: 230}, 15},
		"money":            {budget.Amounts{budget.CostMicros: 1000 + 300}, 15}, // 200 in at 5, 30 out at 10
		"more than it can": {budget.Amounts{budget.TokensOut: 1e9}, 500},
	} {
		r := newRig(t)
		r.ledger.limits = row.free
		run, front := r.started()
		b := ask(1, run, "small")
		b.Out = 0
		if m := front.begin(b); m.Go == nil || m.Go.Out != row.out {
			t.Errorf("%s: %+v, %+v", name, m.Go, m.Refuse)
		}
	}
}
