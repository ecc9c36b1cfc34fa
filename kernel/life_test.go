package kernel

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// event is one of the rig's run.
func (r *rig) event(kind agent.RunEventKind) agent.RunEvent {
	return agent.RunEvent{Time: r.engine.Now(), Kind: kind, ID: r.run.Spec.ID, Name: r.run.Spec.Name, Owner: r.run.Owner, Status: agent.StatusExited}
}

// rows are what the file has of a run: its account, reservations and grants.
func (r *rig) rows(run agent.ID) (text string) {
	r.t.Helper()
	must(r.t, r.file.Read(func(tx *store.KernelTx) error {
		a, err := store.Accounts.Get(tx, string(budget.RunKey(1000, run)))
		open, err2 := store.Reservations.Below(tx, store.RunKey(run, ""))
		held, err3 := store.Grants.HeldBy(tx, string(run))
		text = fmt.Sprintf("account %t, %d reservations, %d grants", a != nil, len(open), len(held))
		return cmp.Or(err, err2, err3)
	}))
	return text
}

// The end of a run settles what its agent had reserved; its removal forgets all of it, and
// gives nothing back to the accounts above it.
func TestTheEndOfARun(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}, Grants: []string{"tool:fetch"}})
	above := &budget.Account{Key: budget.OwnerKey(1000)}
	must(t, r.file.Update(func(tx *store.KernelTx) error {
		_, err := above.Set(budget.Limit{Dimension: "reviews", Granted: 500}, 0, r.engine.Now())
		return cmp.Or(err, store.Accounts.Put(tx, above))
	}))
	r.charge("reviews", 5)
	r.reserve("reviews", 30)
	must(t, r.Happened(r.event(agent.RunEnded), ""))
	if l := r.line("reviews"); l.Used != 35 || l.Reserved != 0 {
		t.Errorf("%+v", l)
	}
	if got := r.rows(r.run.Spec.ID); got != "account true, 0 reservations, 1 grants" {
		t.Error(got)
	}
	must(t, r.Happened(r.event(agent.RunRemoved), ""))
	if got := r.rows(r.run.Spec.ID); got != "account false, 0 reservations, 0 grants" {
		t.Error(got)
	}
	must(t, r.file.Read(func(tx *store.KernelTx) error {
		a, err := store.Accounts.Get(tx, string(above.Key))
		if err == nil && (a.Lines["reviews"].Used != 35 || a.Lines["reviews"].Reserved != 0) {
			t.Errorf("%+v", a.Lines["reviews"])
		}
		return err
	}))
}

// cloved may learn of an end when the run has started again. The reservations
// of the new start stay.
func TestALateEndSettlesNothingOfTheNextStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	r.reserve("reviews", 10)
	late := r.event(agent.RunEnded)
	r.clock.Add(1)
	r.attach(true)
	id := r.reserve("reviews", 20)
	must(t, r.Happened(late, ""))
	if l := r.line("reviews"); l.Used != 10 || l.Reserved != 20 {
		t.Errorf("%+v", l)
	}
	_, err := r.asAgent(agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: id, Amounts: map[string]int64{"reviews": 1}})
	must(t, err)
}

// Events of runs are in the log, also of runs that share nothing.
func TestWhatHappensIsInTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	for _, kind := range []agent.RunEventKind{agent.RunStarted, agent.RunUpdated, agent.RunPaused, agent.RunEnded, agent.RunRemoved, "nonsense"} {
		must(t, r.Happened(r.event(kind), "acme"))
	}
	got := map[string]int{}
	for _, e := range r.entries() {
		if e.Method != "" {
			got[string(e.Kind)+" "+e.Method]++
		}
		if named := e.Namespace == "acme"; named != (e.Method != string(agent.RunStarted)) { // that one begin has recorded
			t.Errorf("%s: namespace %q", e.Method, e.Namespace)
		}
		if e.Run != r.run.Spec.ID || e.Owner != 1000 || e.Agent != "worker" {
			t.Errorf("%+v", e)
		}
	}
	for _, want := range []string{string(audit.KindStart) + " " + string(agent.RunStarted), string(audit.KindLimit) + " " + string(agent.RunUpdated), string(audit.KindAdmin) + " " + string(agent.RunPaused),
		string(audit.KindEnd) + " " + string(agent.RunEnded), string(audit.KindAdmin) + " " + string(agent.RunRemoved)} {
		if got[want] != 1 {
			t.Errorf("%s is there %d times", want, got[want])
		}
		delete(got, want)
	}
	if len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// A cloved that comes back forgets runs that are gone, settles what ended runs had reserved,
// and leaves those that live as they are.
func TestSweep(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	runs := map[string]agent.ID{}
	for _, name := range []string{"lives", "ended", "gone"} {
		r.run = newRun(1000, agent.Kernel{Budgets: []string{"reviews=100"}, Grants: []string{"tool:fetch"}})
		r.attach(true)
		r.reserve("reviews", 10)
		runs[name] = r.run.Spec.ID
	}
	for range 2 { // twice is as once
		must(t, r.Sweep(func(id agent.ID) bool { return id != runs["gone"] }, func(id agent.ID) bool { return id == runs["lives"] }, nothing))
		for name, want := range map[string]string{"lives": "account true, 1 reservations, 1 grants", "ended": "account true, 0 reservations, 1 grants", "gone": "account false, 0 reservations, 0 grants"} {
			if got := r.rows(runs[name]); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
	}
}

// A counter of the Linux kernel is charged by its growth, from zero at each start;
// a reading that is repeated or late charges nothing. Nothing else can be metered.
func TestMeter(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"cpu_ms=1000", "tokens=10"}})
	standings := r.attach(true)
	first := receive(t, standings)
	if strings.Join(first.Metered, " ") != "cpu_ms" || first.Start == 0 {
		t.Fatalf("%+v", first)
	}
	meter := func(start int, total, want int64) {
		t.Helper()
		must(t, r.Meter(r.run, start, map[string]int64{"cpu_ms": total}))
		if l := r.line("cpu_ms"); l.Used != want {
			t.Errorf("start %d, %d: %d are used, want %d", start, total, l.Used, want)
		}
	}
	meter(first.Start, 300, 300)
	meter(first.Start, 300, 300)
	meter(first.Start, 200, 300)
	again := receive(t, r.attach(true))
	if again.Start <= first.Start {
		t.Errorf("the second start has number %d", again.Start)
	}
	meter(again.Start, 100, 400)
	meter(first.Start, 900, 400)
	wantCode(t, r.Meter(r.run, again.Start, map[string]int64{"tokens": 5}), api.CodeParams)
	wantCode(t, r.Meter(r.run, again.Start, map[string]int64{"cpu_ms": -1}), api.CodeParams)
	last := r.attach(false)
	receive(t, last)
	meter(again.Start, 701, 1001)
	if got := receive(t, last); texts(got) != "cpu_ms end, budget.warning" {
		t.Errorf("%q", texts(got))
	}
	r.clock.Add(int64(time.Hour / time.Second))
	meter(again.Start, 702, 1002)
}
