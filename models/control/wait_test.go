package control

import (
	"context"
	"maps"
	"math"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
	"clove.run/clove/store"
)

// queued returns when so many calls of a run wait for others to settle.
func (r *rig) queued(run agent.Run, calls int) {
	r.t.Helper()
	s := r.runs.get(run.Spec.ID)
	for deadline := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		s.line.mu.Lock()
		n := len(s.line.waiting)
		s.line.mu.Unlock()
		if n == calls {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%d calls wait, not %d", n, calls)
		}
	}
}

// open is a request without a maximum of output.
func open(number uint64, run agent.Run) link.Begin {
	b := ask(number, run, "unbounded")
	b.Out, b.N = 0, 1
	return b
}

// newUnbounded has a model of which no maximum is known.
func newUnbounded(t *testing.T, l Ledger) *rig {
	t.Helper()
	r := newRigWith(t, l)
	r.load(`
providers:
  p: {family: openai, url: "https://p.example/v1", users: ["*"], timeouts: {first: 30m}}
  hasty: {family: openai, url: "https://p.example/v1", users: ["*"], timeouts: {first: 1ms}}
models:
  unbounded: {targets: [{provider: p, model: theirs}]}
  hasty: {targets: [{provider: hasty, model: theirs}]}
`)
	return r
}

// ends has clove-upstream report that a call has ended.
func (f *fake) ends(number uint64, in, out int64) {
	f.t.Helper()
	f.send(link.FromUpstream{Done: &link.Done{Number: number, Status: 200, Sent: true, Usage: models.Usage{In: in, Out: out}}})
}

// A call that only others keep out waits until they settle, in the order of coming; one that
// is cancelled leaves. The control is a call that does not fit for what is used.
func TestCallsWaitForWhatOthersHold(t *testing.T) {
	t.Parallel()
	l := newLedger("unbounded")
	l.limits[budget.Tokens] = 5000
	r := newUnbounded(t, l)
	run, front := r.started()
	if m := front.begin(open(1, run)); m.Go == nil || m.Go.Out != 4900 {
		t.Fatalf("%+v, %+v", m.Go, m.Refuse)
	}
	up := within(t, r.upstreams)
	first := within(t, up.up).Call
	for number := range uint64(4) { // 2 to 5
		b := open(2+number, run)
		front.send(link.FromFront{Begin: &b})
		r.queued(run, int(number)+1)
	}
	small := ask(6, run, "unbounded") // it fits, but behind the others
	front.send(link.FromFront{Begin: &small})
	r.queued(run, 5)
	front.send(link.FromFront{Cancel: 3})
	if m := within(t, front.front); m.Refuse == nil || m.Refuse.Number != 3 {
		t.Errorf("%+v", m)
	}
	r.queued(run, 4)
	up.ends(first.Number, 100, 500) // 4400 are left: each leaves the others their shares
	got := map[uint64]int64{}       // what each may have says who came first
	for range 4 {
		m := within(t, front.front)
		if m.Go == nil {
			t.Fatalf("%+v", m.Refuse)
		}
		got[m.Go.Number] = m.Go.Out
	}
	if want := (map[uint64]int64{2: 1075, 4: 1041, 5: 1024, 6: 50}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.queued(run, 0)
	for range 4 {
		up.ends(within(t, up.up).Call.Number, 100, 1000)
	}
	for range 5 {
		within(t, l.settled)
	}
	if m := front.begin(open(7, run)); m.Refuse == nil || m.Refuse.Reason != link.ReasonBudget {
		t.Errorf("control: %+v, %+v", m.Go, m.Refuse)
	}
}

// Waiting has an end.
func TestACallWaitsForATimeOnly(t *testing.T) {
	t.Parallel()
	l := newLedger("unbounded", "hasty")
	l.limits[budget.Tokens] = 5000
	r := newUnbounded(t, l)
	run, front := r.started()
	front.begin(open(1, run))
	b := open(2, run)
	b.Model = "hasty"
	if m := front.begin(b); m.Refuse == nil || m.Refuse.Reason != link.ReasonBusy || m.Refuse.After == 0 {
		t.Errorf("%+v, %+v", m.Go, m.Refuse)
	}
	r.queued(run, 0)
}

// newKernel makes the real ledger.
func newKernel(t *testing.T) *kernel.Kernel {
	t.Helper()
	dir := t.TempDir()
	file, err := store.OpenKernel(filepath.Join(dir, "kernel.db"), soon, kernel.Tables()...)
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.RunOptions())
	if err != nil {
		t.Fatal(err)
	}
	k, err := kernel.New(kernel.Config{Store: file, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, close := range []func() error{k.Close, log.Close, file.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	})
	return k
}

// attach gives a run budgets and every model, and returns how it stands.
func attach(t *testing.T, k *kernel.Kernel, run agent.Run, atEnd string, budgets ...string) <-chan api.Standing {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(leave)
	run.Spec.Kernel = agent.Kernel{Budgets: budgets, AtEnd: atEnd, Grants: []string{"model:*"}}
	standings := make(chan api.Standing, 1000)
	if err := k.Attach(ctx, run, true, func(now api.Standing) { standings <- now }); err != nil {
		t.Fatal(err)
	}
	return standings
}

// A budget's end does not act where a call only has to wait for others. The control is a call
// that does not fit beside what is used.
func TestTheEndOfABudgetActsOnWhatIsUsedOnly(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	r := newUnbounded(t, k.Ledger)
	run, front := r.started()
	standings := attach(t, k, run, "end", "tokens=5000")
	spent := func() (all []api.Budget) {
		for len(standings) > 0 {
			all = append(all, (<-standings).Spent...)
		}
		return all
	}
	front.begin(open(1, run))
	up := within(t, r.upstreams)
	first := within(t, up.up).Call
	b := open(2, run)
	front.send(link.FromFront{Begin: &b})
	r.queued(run, 1)
	up.ends(first.Number, 100, 400)
	if m := within(t, front.front); m.Go == nil || m.Go.Number != 2 || m.Go.Out != 4400 {
		t.Fatalf("%+v, %+v", m.Go, m.Refuse)
	}
	if all := spent(); all != nil {
		t.Errorf("%+v", all)
	}
	large := ask(3, run, "unbounded")
	large.In = 4600
	if m := front.begin(large); m.Refuse == nil || m.Refuse.Reason != link.ReasonBudget {
		t.Errorf("control: %+v, %+v", m.Go, m.Refuse)
	}
	if all := spent(); len(all) != 1 || all[0].Dimension != "tokens" || all[0].AtEnd != "end" {
		t.Errorf("control: %+v", all)
	}
}

// A hundred calls at once use what there is, to the last call that fits, and not one more.
func TestManyCallsNeverOvershoot(t *testing.T) {
	t.Parallel()
	const calls, fit, each = 100, 10, 100 + 2*50
	k := newKernel(t)
	r := newUnbounded(t, k.Ledger)
	run, front := r.started()
	attach(t, k, run, "refuse", "tokens=2199") // one less than for another
	for number := range uint64(calls) {
		b := ask(1+number, run, "unbounded")
		front.send(link.FromFront{Begin: &b})
	}
	var up *fake
	made := 0
	for range calls {
		m := within(t, front.front)
		if m.Go == nil {
			if m.Refuse.Reason != link.ReasonBudget {
				t.Errorf("%+v", m.Refuse)
			}
			continue
		}
		made++
		if up == nil {
			up = within(t, r.upstreams)
		}
		up.ends(within(t, up.up).Call.Number, 100, 100)
	}
	if left, err := k.Ledger.Left(run, nil); err != nil || made != fit || left.Unheld[budget.Tokens] != 2199-fit*each {
		t.Errorf("%d calls, %+v, %v", made, left, err)
	}
}

// What is chosen fits now, or waits and fits later, or never fits; a call without a maximum
// leaves the others their shares.
func TestFits(t *testing.T) {
	t.Parallel()
	price := &config.Price{Rates: config.Rates{In: 1000, Out: 10_000, Reasoning: 10_000}}
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(-10, 20_000)
		k := &demand{begin: link.Begin{Format: models.OpenAIChat, In: amount.Draw(t, "in") + 10, N: rapid.Int64Range(1, 3).Draw(t, "n"),
			Out: rapid.SampledFrom([]int64{0, 0, 1, 700, 9000}).Draw(t, "out"), Least: rapid.SampledFrom([]int64{0, 0, 3000}).Draw(t, "least")},
			target: config.Target{Factor: 1, Price: price, MaxOutput: rapid.SampledFrom([]int64{0, 300, 4000}).Draw(t, "most")}}
		left := budget.Left{Free: budget.Amounts{}, Unheld: budget.Amounts{}}
		for _, d := range []budget.Dimension{budget.Tokens, budget.TokensIn, budget.TokensOut, budget.CostMicros, budget.ModelCalls} {
			if rapid.Bool().Draw(t, "limited") {
				left.Free[d] = amount.Draw(t, string(d))
				left.Unheld[d] = left.Free[d] + max(0, amount.Draw(t, "held"))
			}
		}
		others := rapid.IntRange(0, 5).Draw(t, "others")
		amounts, err := k.fit(left, others)
		least := k.bound(k.least())
		switch {
		case err != nil && err != errHeld:
			t.Fatal(err)
		case err == errHeld && !least.Fits(left.Unheld):
			t.Fatal("it waits for what will never be")
		case err == errHeld && !amounts.Fits(left.Unheld):
			t.Fatal("it waits, and does not fit")
		case err == nil && !amounts.Fits(left.Free) && amounts.Fits(left.Unheld):
			t.Fatal("only others are in its way, and it is refused")
		case err == nil && amounts.Fits(left.Unheld) && k.begin.Out == 0 && k.target.MaxOutput > 0 && k.out > k.target.MaxOutput:
			t.Fatalf("%d is more than the model can", k.out)
		case err == nil && amounts.Fits(left.Free) && !maps.Equal(amounts, k.bound(k.out)):
			t.Fatalf("%v is not the upper bound of an answer of %d", amounts, k.out)
		case err == nil && k.begin.Out > 0 && (k.out > k.begin.Out || k.out < k.least()):
			t.Fatalf("%d, between %d and %d", k.out, k.least(), k.begin.Out)
		}
		if room := k.room(left.Free); err == nil && k.begin.Out == 0 && room < math.MaxInt64 && k.out > max(enough, k.begin.Least, room/int64(others+1)) {
			t.Fatalf("it takes %d of %d from %d others", k.out, room, others)
		}
	})
}
