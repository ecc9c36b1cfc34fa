package control

import (
	"maps"
	"testing"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// An answer that is longer than its reservation has more reserved, once, as far as the budgets
// have it. What it used is paid, and nothing stays reserved.
func TestMoreIsReservedForALongerAnswer(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		limit, others, want int64 // tokens of output; want 0: no more
	}{
		"nothing is limited":   {0, 0, 100*2 + enough},
		"all is free":          {5000, 0, 100*2 + enough},
		"some is free":         {300, 0, 300},
		"nothing more":         {100, 0, 0},
		"others hold most":     {500, 350, 150},
		"others hold the rest": {500, 400, 0},
	} {
		r := newRig(t)
		if row.limit > 0 {
			r.ledger.limits[budget.TokensOut] = row.limit
		}
		if row.others > 0 {
			r.ledger.open["other"] = reserved{amounts: budget.Amounts{budget.TokensOut: row.others}}
		}
		run, front := r.started()
		b := ask(1, run, "free")
		b.Out, b.N = 100, 1
		if m := front.begin(b); m.Go == nil {
			t.Fatalf("%s: %+v", name, m.Refuse)
		}
		up := within(t, r.upstreams)
		call := within(t, up.up).Call
		if call.MostOut != 100 {
			t.Errorf("%s: %+v", name, call)
		}
		for _, want := range []int64{row.want, 0} { // the second time nothing
			up.send(link.FromUpstream{More: call.Number})
			if m := within(t, up.up); m.More == nil || m.More.Call != call.Number || m.More.MostOut != want {
				t.Errorf("%s: %+v, want %d", name, m.More, want)
			}
		}
		up.send(link.FromUpstream{More: 99}) // another's
		if m := within(t, up.up); m.More == nil || m.More.MostOut != 0 {
			t.Errorf("%s: %+v", name, m.More)
		}
		up.send(link.FromUpstream{Done: &link.Done{Number: call.Number, Status: 200, Sent: true, Usage: models.Usage{In: 5, Out: 120}}})
		if used := within(t, r.ledger.settled); used[budget.TokensOut] != 120 {
			t.Errorf("%s: %v", name, used)
		}
		within(t, r.called)
		if use := r.used(); len(use) != 1 || (use[0].Over == 0) != (row.want > 0) {
			t.Errorf("%s: %+v", name, use)
		}
	}
}

// Answers of 2xx and 4xx count as model_calls, and so does what the provider may have served.
// The others do not, and a run has no more than so many of them: behind those, its calls wait
// for no provider. Another run is the control.
func TestWhatIsNoCallIsBoundedByARate(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		done   link.Done
		counts bool
	}{
		"answered":      {link.Done{Status: 200, Sent: true}, true},
		"bad request":   {link.Done{Status: 400, Sent: true}, true},
		"no such key":   {link.Done{Status: 401, Sent: true}, true},
		"not found":     {link.Done{Status: 404, Sent: true}, true},
		"cancelled":     {link.Done{Sent: true, Error: "cancelled"}, true},
		"redirected":    {link.Done{Status: 307, Sent: true}, false},
		"too many":      {link.Done{Status: 429, Sent: true}, false},
		"failed":        {link.Done{Status: 500, Sent: true}, false},
		"overloaded":    {link.Done{Status: 529, Sent: true}, false},
		"no connection": {link.Done{Unreached: true, Error: "no"}, false},
	} {
		r := newRig(t)
		run, front := r.started()
		var up *fake
		made, refused := 0, 0
		for n := range uint64(maxUncounted + 20) {
			m := front.begin(ask(n+1, run, "free"))
			if m.Go == nil {
				if m.Refuse.Reason != link.ReasonBusy || m.Refuse.After == 0 {
					t.Errorf("%s: %+v", name, m.Refuse)
				}
				refused++
				continue
			}
			made++
			if up == nil {
				up = within(t, r.upstreams)
			}
			done := row.done
			done.Number = within(t, up.up).Call.Number
			up.send(link.FromUpstream{Done: &done})
			want := budget.Amounts{}
			if row.counts {
				want[budget.ModelCalls] = 1
			}
			if used := within(t, r.ledger.settled); !maps.Equal(used, want) {
				t.Fatalf("%s: %v, want %v", name, used, want)
			}
		}
		if row.counts != (refused == 0) || made < maxUncounted {
			t.Errorf("%s: %d are made, %d refused", name, made, refused)
		}
		other := r.serve(1000)
		within(t, front.front)
		if m := front.begin(ask(1000, other, "free")); m.Go == nil {
			t.Errorf("control: %s: %+v", name, m.Refuse)
		}
	}
}
