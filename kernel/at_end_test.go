package kernel

import (
	"clove.run/clove/kernel/ledger"
	"fmt"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
)

// beside attaches another run to the kernel of a rig.
func (r *rig) beside(run agent.Run) *rig {
	r.t.Helper()
	return &rig{t: r.t, Kernel: r.Kernel, dir: r.dir, file: r.file, log: r.log, run: run, manifests: r.manifests, runs: r.runs, close: func() {}}
}

// set sets the limits of an account that several runs spend from.
func (r *rig) set(key budget.Key, atEnd string, limits ...string) {
	r.t.Helper()
	_, err := r.SetBudget(0, api.BudgetSetParams{Account: string(key), Limits: limits, AtEnd: atEnd})
	must(r.t, err)
}

// latest is how the run stands after its last report; "nothing new" where there was none.
func latest(standings <-chan api.Standing) string {
	text := "nothing new"
	for len(standings) > 0 {
		text = texts(<-standings)
	}
	return text
}

func (r *rig) tryReserve(amount int64) error {
	_, err := r.asAgent(agents.BudgetReserve.Name, fmt.Sprintf(`{"amounts":{"reviews":%d}}`, amount))
	return err
}

// A reservation that cannot fit does what the account says of its end. One that only open
// reservations keep out is refused, and nothing more: their settlement may make room.
func TestARefusedReservationDoesAtEnd(t *testing.T) {
	t.Parallel()
	for atEnd, want := range map[string]string{"end": "reviews end", "pause": "reviews pause, budget.paused", "refuse": "nothing new"} {
		r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100,warn=100"}, AtEnd: atEnd})
		standings := r.attach(false)
		<-standings
		r.charge("reviews", 40)
		open := r.reserve("reviews", 50)
		wantCode(t, r.tryReserve(60), api.CodeBudget)
		if got := latest(standings); got != "nothing new" {
			t.Errorf("%s: with 50 reserved, 60 more: %s", atEnd, got)
		}
		wantCode(t, r.tryReserve(61), api.CodeBudget)
		if got := latest(standings); got != want {
			t.Errorf("%s: %q, want %q", atEnd, got, want)
		}
		if l := r.line("reviews"); l.Used != 40 || l.Reserved != 50 || l.Spent != (atEnd != "refuse") || l.Spent != (l.Wanted == 61) {
			t.Errorf("%s: %+v", atEnd, l)
		}
		_, err := r.asAgent(agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: open, Amounts: map[string]int64{"reviews": 1}})
		must(t, err)
		if got := r.line("reviews").Spent; got != (atEnd != "refuse") {
			t.Errorf("%s: after a settlement: %t", atEnd, got)
		}
		latest(standings)
		must(t, r.admin(methods.BudgetRaise.Name, `{"amounts":{"reviews":1}}`))
		if got := latest(standings); got != "" || r.line("reviews").Spent {
			t.Errorf("%s: after a raise: %q, %+v", atEnd, got, r.line("reviews"))
		}
		must(t, r.tryReserve(60))
	}
}

// A raise, a reset, a new period or a new start ends a shortage; more use does not.
func TestAShortageEndsWithItsReason(t *testing.T) {
	t.Parallel()
	for name, lift := range map[string]func(*rig){
		"raise":  func(r *rig) { must(t, r.admin(methods.BudgetRaise.Name, `{"amounts":{"reviews":1}}`)) },
		"reset":  func(r *rig) { must(t, r.admin(methods.BudgetReset.Name, `{"dimensions":["reviews"]}`)) },
		"period": func(r *rig) { r.clock.Add(3600) },
		"start":  func(r *rig) { r.attach(true) },
	} {
		r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100/hour"}, AtEnd: "pause"})
		r.charge("reviews", 60)
		wantCode(t, r.tryReserve(41), api.CodeBudget)
		r.charge("reviews", 1)
		r.reserve("reviews", 1)
		if !r.line("reviews").Spent {
			t.Errorf("%s: more use lifts it", name)
		}
		lift(r)
		if l := r.line("reviews"); l.Spent || l.Wanted != 0 {
			t.Errorf("%s: %+v", name, l)
		}
		r.charge("reviews", 1) // which forgets it
		if l := r.line("reviews"); l.Spent {
			t.Errorf("%s: it is back: %+v", name, l)
		}
	}
}

// In an account of several runs, what an agent wants or charges stops that run and no other. An
// account that is spent by it refuses all of them. The control is a dimension that clove counts:
// what is used beyond its limit stops all runs, also those that did not charge.
func TestWhomASharedAccountStops(t *testing.T) {
	t.Parallel()
	first := newRigOf(t, newRun(1000, agent.Kernel{Socket: true, Namespace: "acme"}))
	key := budget.NamespaceKey(1000, "acme")
	first.set(key, "pause", "reviews=10,warn=8", "cpu_ms=100")
	second, other := first.beside(newRun(1000, agent.Kernel{Socket: true, Namespace: "acme"})), first.beside(newRun(1000, agent.Kernel{Socket: true}))
	of1, of2, ofOther := first.attach(false), second.attach(true), other.attach(true)
	for _, s := range []<-chan api.Standing{of1, of2, ofOther} {
		latest(s)
	}
	want := func(when, want1, want2 string) {
		t.Helper()
		if got1, got2, gotOther := latest(of1), latest(of2), latest(ofOther); got1 != want1 || got2 != want2 || gotOther != "nothing new" {
			t.Errorf("%s: %q, %q, and elsewhere %q", when, got1, got2, gotOther)
		}
	}
	wantCode(t, first.tryReserve(11), api.CodeBudget)
	want("11 are wanted", "reviews pause, budget.paused", "nothing new")
	wantCode(t, first.tryCharge("reviews", budget.MaxAmount), api.CodeBudget)
	want("everything is charged", "reviews pause, budget.paused", "nothing new")
	second.charge("reviews", 8)
	want("8 are used", "nothing new", "budget.warning")
	wantCode(t, second.tryCharge("reviews", 3), api.CodeBudget)
	want("11 would be used", "nothing new", "reviews pause, budget.paused")
	first.set(key, "pause", "reviews=9")
	second.charge("reviews", 1)
	latest(of1)
	latest(of2)
	for _, r := range []*rig{first, second} {
		wantCode(t, r.tryCharge("reviews", 1), api.CodeBudget)
		wantCode(t, r.tryReserve(1), api.CodeBudget)
		if l := r.line("reviews"); l.Used != 0 && l.Used != 9 {
			t.Errorf("%+v", l)
		}
	}
	want("9 are used of 9", "nothing new", "reviews pause, budget.paused")
	must(t, second.Meter(second.run, 1, map[string]int64{"cpu_ms": 101}))
	want("control", "cpu_ms pause, reviews refuse", "cpu_ms pause, reviews pause, budget.warning, budget.paused")
}

func (r *rig) tryCharge(dimension string, amount int64) error {
	_, err := r.asAgent(agents.BudgetCharge.Name, api.BudgetChargeParams{Amounts: map[string]int64{dimension: amount}})
	return err
}

// One charge of everything by a run with a limit of its own ends that run, and leaves to its
// sibling what the run was not given. The line says spent once nothing is left.
func TestAChargeOfEverything(t *testing.T) {
	t.Parallel()
	attacker := newRigOf(t, newRun(1000, agent.Kernel{Budgets: []string{"reviews=60"}, Namespace: "acme"}))
	key := budget.NamespaceKey(1000, "acme")
	attacker.set(key, "end", "reviews=100")
	sibling := attacker.beside(newRun(1000, agent.Kernel{Socket: true, Namespace: "acme"}))
	ofAttacker, ofSibling := attacker.attach(false), sibling.attach(true)
	latest(ofAttacker)
	latest(ofSibling)
	attacker.charge("reviews", budget.MaxAmount)
	if got, other := latest(ofAttacker), latest(ofSibling); got != "reviews end, budget.warning" || other != "nothing new" {
		t.Errorf("the attacker: %q, its sibling: %q", got, other)
	}
	above := func() api.Budget {
		t.Helper()
		list, err := attacker.ListBudgets(0, api.BudgetListParams{Account: string(key)})
		must(t, err)
		return list.Budgets[0]
	}
	if b := above(); b.Used != 60 || b.Spent {
		t.Errorf("%+v", b)
	}
	sibling.charge("reviews", 40)
	wantCode(t, sibling.tryCharge("reviews", 1), api.CodeBudget)
	if b := above(); b.Used != 100 || !b.Spent || latest(ofSibling) != "reviews refuse, budget.warning" {
		t.Errorf("%+v", b)
	}
	late := sibling.beside(newRun(1000, agent.Kernel{Socket: true, Namespace: "acme"}))
	if got := latest(late.attach(true)); got != "reviews refuse, budget.warning" {
		t.Errorf("a run that starts now: %q", got)
	}
	days, err := attacker.ReportBudgets(0, api.BudgetReportParams{})
	if err != nil || len(days.Days) != 1 || days.Days[0].Used != 100 {
		t.Errorf("%+v, %v", days, err)
	}
}

// A run's reservations count when it ends, and may leave nothing to the others: in dimensions that
// clove counts, that stops them. The control is a dimension that agents charge.
func TestTheEndOfARunStopsOthers(t *testing.T) {
	t.Parallel()
	for d, want := range map[string]string{"model_calls": "model_calls end", "reviews": "reviews refuse"} {
		first := newRigOf(t, newRun(1000, agent.Kernel{Grants: []string{"model:small"}, Namespace: "acme"}))
		key := budget.NamespaceKey(1000, "acme")
		first.set(key, "end", d+"=10")
		_, err := first.Ledger.Reserve(first.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Fit: exactly(budget.Amounts{budget.Dimension(d): 10})})
		must(t, err)
		first.set(key, "end", d+"=9")
		second := first.beside(newRun(1000, agent.Kernel{Socket: true, Namespace: "acme"}))
		standings := second.attach(true)
		if got := latest(standings); got != "" {
			t.Fatalf("before: %q", got)
		}
		must(t, first.Happened(first.event(agent.RunEnded), ""))
		if got := latest(standings); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
}

// A refused call that changed how the run stands is refused again with its key, and leaves
// one entry for each.
func TestARefusalHasNoAnswerToKeep(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10"}, AtEnd: "pause"})
	const text = `{"amounts":{"reviews":11},"key":"k"}`
	for range 2 {
		_, err := r.asAgent(agents.BudgetReserve.Name, text)
		wantCode(t, err, api.CodeBudget)
	}
	must(t, r.admin(methods.BudgetRaise.Name, `{"amounts":{"reviews":5}}`))
	_, err := r.asAgent(agents.BudgetReserve.Name, text)
	must(t, err)
	denied := 0
	for _, e := range r.entries() {
		if e.Method == agents.BudgetReserve.Name && e.Code == "budget" {
			denied++
		}
	}
	if denied != 2 {
		t.Errorf("%d refusals are in the log", denied)
	}
}

// A run spends from an account above it without a budget of its own, where the account limits
// what the Linux kernel counts.
func TestWhoIsMetered(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	plain := newRun(1000, agent.Kernel{})
	want := func(when string, want bool) {
		t.Helper()
		for _, uid := range []uint32{1000, 1001} {
			plain.Owner.UID = uid
			if got, err := r.Metered(plain); err != nil || got != (want && uid == 1000) {
				t.Errorf("%s, user %d: %t, %v", when, uid, got, err)
			}
		}
	}
	want("without an account", false)
	r.set(budget.OwnerKey(1000), "end", "tokens=10", "reviews=10")
	want("with what the agent counts", false)
	r.set(budget.NameKey(1000, "worker"), "end", "cpu_ms=10")
	want("with what the Linux kernel counts", true)
}
