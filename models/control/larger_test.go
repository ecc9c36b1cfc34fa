package control

import (
	"math"
	"testing"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// A call that names a larger maximum than is left gets what is left, down to 1024 tokens of each
// answer or what its reasoning needs. What is reserved stays its upper bound. The controls are a
// maximum that fits, and one token less than the least.
func TestALargerMaximumGetsWhatIsLeft(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		limit, out, least, n int64 // limit: of tokens; 100 are the input's
		want                 int64 // 0: it is refused
	}{
		"control: it fits":          {32_100, 32_000, 0, 1, 32_000},
		"it is larger":              {32_099, 32_000, 0, 1, 31_999},
		"of two answers":            {32_100, 32_000, 0, 2, 16_000},
		"the least":                 {1124, 32_000, 0, 1, 1024},
		"control: less":             {1123, 32_000, 0, 1, 0},
		"control: it wants less":    {149, 50, 0, 1, 0},
		"all that it wants":         {150, 50, 0, 1, 50},
		"its reasoning fits":        {4101, 32_000, 4001, 1, 4001},
		"control: it does not":      {4100, 32_000, 4001, 1, 0},
		"reasoning between calls":   {4100, 4000, 8001, 1, 4000},
		"reasoning and no maximum":  {4101, 0, 4001, 1, 4001},
		"control: the same, larger": {4100, 0, 4001, 1, 0},
	} {
		l := newLedger("unbounded")
		l.limits[budget.Tokens] = row.limit
		r := newUnbounded(t, l)
		run, front := r.started()
		b := ask(1, run, "unbounded")
		b.Out, b.Least, b.N = row.out, row.least, row.n
		m := front.begin(b)
		if row.want == 0 {
			if m.Refuse == nil || m.Refuse.Reason != link.ReasonBudget {
				t.Errorf("%s: %+v, %+v", name, m.Go, m.Refuse)
			}
			continue
		}
		if m.Go == nil || m.Go.Out != row.want {
			t.Errorf("%s: %+v, %+v", name, m.Go, m.Refuse)
			continue
		}
		if call := within(t, within(t, r.upstreams).up).Call; call.MostOut != row.want*row.n {
			t.Errorf("%s: %+v", name, call)
		}
		l.mu.Lock()
		if got := l.reserved[0].amounts[budget.TokensOut]; got != row.want*row.n {
			t.Errorf("%s: %d are reserved", name, got)
		}
		l.mu.Unlock()
	}
}

// It waits for what others hold, until its least is free.
func TestALargerMaximumWaitsForItsLeast(t *testing.T) {
	t.Parallel()
	l := newLedger("unbounded")
	l.limits[budget.Tokens] = 5000
	r := newUnbounded(t, l)
	run, front := r.started()
	front.begin(open(1, run)) // it holds all
	up := within(t, r.upstreams)
	first := within(t, up.up).Call
	b := open(2, run)
	b.Out = 32_000
	front.send(link.FromFront{Begin: &b})
	r.queued(run, 1)
	up.ends(first.Number, 100, 900)
	if m := within(t, front.front); m.Go == nil || m.Go.Out != 3900 {
		t.Errorf("%+v, %+v", m.Go, m.Refuse)
	}
}

// A call of Anthropic's messages that names no maximum, of a model whose own is not known, gets
// one: the provider would refuse it. The controls are another format, and a maximum that is known.
func TestMessagesGetAMaximum(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		format                  models.Format
		limit, known, reasoning int64
		want                    int64
	}{
		"nothing bounds it":        {models.AnthropicMessages, math.MaxInt64, 0, 0, needed},
		"more is left":             {models.AnthropicMessages, 100_000, 0, 0, needed},
		"less is left":             {models.AnthropicMessages, 2100, 0, 0, 2000},
		"its reasoning needs more": {models.AnthropicMessages, math.MaxInt64, 0, 20_001, 20_001},
		"control: another format":  {models.OpenAIChat, math.MaxInt64, 0, 0, 0},
		"control: it is known":     {models.AnthropicMessages, math.MaxInt64, 500, 0, 500},
	} {
		w := demand{begin: link.Begin{Format: row.format, In: 100, N: 1, Least: row.reasoning}, target: config.Target{Factor: 1, MaxOutput: row.known}}
		left := budget.Amounts{}
		if row.limit < math.MaxInt64 {
			left[budget.Tokens] = row.limit
		}
		if _, err := w.fit(budget.Left{Free: left, Unheld: left}, 0); err != nil || w.out != row.want {
			t.Errorf("%s: %d, %v", name, w.out, err)
		}
	}
}
