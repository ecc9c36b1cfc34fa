package control

import (
	"clove.run/clove/kernel/ledger"
	"maps"
	"testing"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// All runs of a user share what the user may spend at a provider. The controls are another
// provider, and another user.
func TestAUsersBudgetAtAProvider(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	r := newRigWith(t, k.Ledger)
	run, front := r.started()
	attach(t, k, run, "end")
	if m := front.begin(ask(1, run, "metered")); m.Go == nil { // tokens=1000
		t.Fatalf("%+v", m.Refuse)
	}
	up := within(t, r.upstreams)
	up.ends(within(t, up.up).Call.Number, 100, 750)
	within(t, r.called) // it is settled
	second := r.serve(1000)
	within(t, front.front)
	standings := attach(t, k, second, "end")
	if m := front.begin(ask(2, second, "metered")); m.Refuse == nil || m.Refuse.Reason != link.ReasonBudget {
		t.Errorf("%+v, %+v", m.Go, m.Refuse)
	}
	for len(standings) > 0 {
		if now := <-standings; len(now.Spent) > 0 {
			t.Errorf("the run ends: %+v", now.Spent)
		}
	}
	if m := front.begin(ask(3, second, "small")); m.Go == nil {
		t.Errorf("control: %+v", m.Refuse)
	}
	other := r.serve(2000)
	attach(t, k, other, "end")
	theirs := within(t, r.fronts)
	within(t, theirs.front)
	if m := theirs.begin(ask(4, other, "metered")); m.Go == nil {
		t.Errorf("control: %+v", m.Refuse)
	}
	ceiling := &ledger.Ceiling{Account: budget.ProviderKey(1000, "metered"), Limits: r.config.Load().Providers["metered"].Budget(1000)}
	if left, err := k.Ledger.Left(run, ceiling); err != nil || left.Unheld.Of(budget.Tokens) != 150 {
		t.Errorf("%+v, %v", left, err)
	}
}

// With the payment of a call, as much is drawn for the next one, with twice the input. One
// that failed, and a count of tokens, draw nothing.
func TestWhatIsDrawnAhead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	failed, count := link.Done{Status: 500, Sent: true}, ask(3, run, "haiku")
	count.Format, count.Out = models.AnthropicCount, 0
	var up *fake
	for i, row := range []struct {
		begin link.Begin
		done  link.Done
		want  budget.Amounts
	}{
		{ask(1, run, "small"), link.Done{Status: 200, Sent: true}, budget.Amounts{budget.ModelCalls: 1, budget.TokensIn: 400, budget.TokensOut: 100, budget.CostMicros: 400*5 + 100*10}},
		{ask(2, run, "small"), failed, nil},
		{count, link.Done{Status: 200, Sent: true}, nil},
	} {
		if m := front.begin(row.begin); m.Go == nil {
			t.Fatalf("%+v", m.Refuse)
		}
		if up == nil {
			up = within(t, r.upstreams)
		}
		row.done.Number = within(t, up.up).Call.Number
		up.send(link.FromUpstream{Done: &row.done})
		within(t, r.ledger.settled)
		r.ledger.mu.Lock()
		if got := r.ledger.ahead; !maps.Equal(got, row.want) {
			t.Errorf("%d: %v, want %v", i, got, row.want)
		}
		r.ledger.mu.Unlock()
	}
}
