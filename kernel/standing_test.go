package kernel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// texts are the parts of a standing that a supervisor acts on.
func texts(s api.Standing) string {
	var all []string
	for _, rule := range s.Net {
		all = append(all, rule.Target)
	}
	for _, b := range s.Spent {
		all = append(all, b.Dimension+" "+b.AtEnd)
	}
	for _, n := range s.Notices {
		all = append(all, n.Method)
	}
	return strings.Join(all, ", ")
}

// A supervisor gets the standing at once, and a new one with each change that concerns it,
// before the call is answered.
func TestStandingFollowsChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10", "tokens=100"}, Grants: []string{"net:a.example:443"}, AtEnd: "pause"})
	standings := r.attach(false)
	if got := texts(receive(t, standings)); got != "a.example:443" {
		t.Fatalf("at first %q", got)
	}
	for _, step := range []struct {
		do   func() error
		want string // "": nothing is reported
	}{
		{func() error { r.charge("reviews", 7); return nil }, ""},
		{func() error { r.charge("reviews", 1); return nil }, "a.example:443, budget.warning"},
		{func() error { r.charge("reviews", 3); return nil }, "a.example:443, reviews pause, budget.paused"},
		{func() error { r.charge("reviews", 1); return nil }, ""},
		{func() error { return r.admin(methods.BudgetRaise.Name, `{"amounts":{"reviews":1}}`) }, "a.example:443, reviews pause"},
		{func() error { return r.admin(methods.BudgetRaise.Name, `{"amounts":{"reviews":1}}`) }, "a.example:443"},
		{func() error { r.clock.Add(1); return r.admin(methods.GrantGive.Name, `{"grant":"net:b.example:443"}`) }, "a.example:443, b.example:443, grant.changed"},
		{func() error {
			return r.admin(agents.GrantRevoke.Name, `{"id":"`+r.grants()["net:a.example:443"].ID+`"}`)
		}, "b.example:443, grant.changed"},
		{func() error { r.reserve("tokens", 100); return nil }, ""},
		{func() error { return r.admin(methods.GrantGive.Name, `{"grant":"nonsense"}`) }, "error"},
	} {
		err := step.do()
		if (err != nil) != (step.want == "error") {
			t.Fatal(err)
		}
		got := ""
		if len(standings) > 0 {
			got = texts(<-standings)
		}
		if step.want == "error" {
			step.want = ""
		}
		if got != step.want || len(standings) > 0 {
			t.Errorf("%q, want %q, and %d more", got, step.want, len(standings))
		}
	}
}

// admin is a call of the run's owner.
func (r *rig) admin(method, text string) error {
	_, err := r.asUser(1000, method, text)
	return err
}

// However many change it at once, the last standing is the newest.
func TestTheLastStandingIsTheNewest(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Socket: true})
	standings := r.attach(false)
	const changes = 32
	var all sync.WaitGroup
	for i := range changes {
		all.Go(func() {
			if err := r.admin(methods.GrantGive.Name, fmt.Sprintf(`{"grant":"net:n%d.example:443"}`, i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	last := api.Standing{}
	for range changes + 1 {
		last = receive(t, standings)
	}
	if len(last.Net) != changes || len(standings) != 0 {
		t.Errorf("%d rules, %d more standings", len(last.Net), len(standings))
	}
}

// A supervisor that has gone gets nothing more, and its end does not detach the next one.
func TestAttachmentsEndWithTheirContext(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Socket: true})
	var mu sync.Mutex
	reports := map[string]int{}
	attach := func(name string) context.CancelFunc {
		ctx, leave := context.WithCancel(context.Background())
		t.Cleanup(leave)
		must(t, r.Attach(ctx, r.run, false, func(api.Standing) { mu.Lock(); defer mu.Unlock(); reports[name]++ }))
		return leave
	}
	leave := attach("first")
	leaveSecond := attach("second")
	leave()
	must(t, r.admin(methods.GrantGive.Name, `{"grant":"net:a.example:443"}`))
	leaveSecond()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		if len(r.engine.Attached()) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it is attached for ever")
		}
	}
	must(t, r.admin(methods.GrantGive.Name, `{"grant":"net:b.example:443"}`))
	if reports["first"] != 1 || reports["second"] != 2 {
		t.Errorf("%v", reports)
	}
}

// A run that starts again keeps what it has used; the reservations of its agent count as
// used, and are marked as assumed. A supervisor that only attaches again settles nothing.
func TestARestartSettlesReservations(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=100", "tokens=100"}})
	r.charge("reviews", 5)
	id := r.reserve("reviews", 30)
	r.reserve("tokens", 10)
	r.attach(false)
	if l := r.line("reviews"); l.Reserved != 30 || l.Used != 5 {
		t.Errorf("attached again: %+v", l)
	}
	r.attach(true)
	if l := r.line("reviews"); l.Reserved != 0 || l.Used != 35 || l.Peak != 35 {
		t.Errorf("started again: %+v", l)
	}
	_, err := r.asAgent(agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: id, Amounts: map[string]int64{"reviews": 1}})
	wantCode(t, err, api.CodeNotFound)
	must(t, r.file.Read(func(tx *store.KernelTx) error {
		a, err := store.Accounts.Get(tx, string(budget.RunKey(1000, r.run.Spec.ID)))
		if err == nil && (a.Lines["reviews"].Assumed != 30 || a.Lines["tokens"].Assumed != 10) {
			err = errors.New("nothing is marked as assumed")
		}
		return err
	}))
}

// A run whose grants or budgets cannot be made does not start, and leaves nothing.
func TestABadBeginningLeavesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	for name, has := range map[string]agent.Kernel{
		"a budget":                {Budgets: []string{"reviews=1", "x"}},
		"a grant":                 {Grants: []string{"tool:fetch", "nonsense:x"}, Budgets: []string{"reviews=1"}},
		"a rule beyond the owner": {Grants: []string{"tool:fetch", "net:forbidden.example"}},
	} {
		run := newRun(1000, has)
		err := r.Attach(context.Background(), run, true, func(api.Standing) { t.Errorf("%s: it stands", name) })
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		must(t, r.file.Read(func(tx *store.KernelTx) error {
			held, err := store.Grants.HeldBy(tx, string(run.Spec.ID))
			a, err2 := store.Accounts.Get(tx, string(budget.RunKey(1000, run.Spec.ID)))
			if len(held) != 0 || a != nil {
				t.Errorf("%s: %d grants, account %v", name, len(held), a)
			}
			return cmp.Or(err, err2)
		}))
	}
}
