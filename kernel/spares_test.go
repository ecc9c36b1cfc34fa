package kernel

import (
	"clove.run/clove/kernel/ledger"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
)

var errTight = errors.New("others hold what is left")

// asks reserves model_calls as the service of models does: without the amounts that others hold.
func (r *rig) asks(calls int64) (string, error) {
	return r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Fit: func(left budget.Left) (budget.Amounts, error) {
		amounts := budget.Amounts{budget.ModelCalls: calls}
		if !amounts.Fits(left.Free) && amounts.Fits(left.Unheld) {
			return nil, errTight
		}
		return amounts, nil
	}})
}

// pays settles a call, and draws for the next.
func (r *rig) pays(id string, calls, ahead int64) {
	r.t.Helper()
	must(r.t, r.Ledger.Settle(r.run, ledger.Settlement{Service: "model", Reservation: id, Used: budget.Amounts{budget.ModelCalls: calls}, Ahead: budget.Amounts{budget.ModelCalls: ahead}}))
}

// call makes a whole call, and reports whether it began without a commit.
func (r *rig) call(calls, ahead int64) (quick bool) {
	r.t.Helper()
	changed := r.Ledger.Changed()
	id, err := r.asks(calls)
	must(r.t, err)
	select {
	case <-changed:
	default:
		quick = true
	}
	r.pays(id, calls, ahead)
	return quick
}

func newSpending(t *testing.T, budgets ...string) *rig {
	t.Helper()
	return newRig(t, agent.Kernel{Grants: []string{"model:small"}, Budgets: budgets})
}

// crash closes the files as a killed process leaves them.
func (r *rig) crash() {
	r.t.Helper()
	must(r.t, r.engine.Close())
	must(r.t, r.log.Close())
	must(r.t, r.file.Close())
	r.open()
	always := func(agent.ID) bool { return true }
	must(r.t, r.Sweep(always, always, nothing))
}

// A call in a spare begins without a commit, and its account and log are as of any other. The
// control is the first call, and one that is larger.
func TestACallInASpareBeginsWithoutACommit(t *testing.T) {
	t.Parallel()
	r := newSpending(t, "model_calls=1000")
	for i, row := range []struct {
		calls int64
		quick bool
	}{{4, false}, {4, true}, {8, true}, {9, false}, {8, true}} {
		if quick := r.call(row.calls, 8); quick != row.quick {
			t.Errorf("call %d of %d: %t", i, row.calls, quick)
		}
	}
	r.wantCalls(33, 16, 0)
	var got, ids []string
	for _, e := range r.entries() { // which closes
		if strings.HasPrefix(e.Method, "model.") {
			got = append(got, fmt.Sprint(e.Method, " ", e.What, " ", e.Verdict, " ", e.Rule != "", " ", e.Correlation != ""))
			ids = append(ids, e.Correlation)
		}
	}
	for i := 0; i < len(got); i += 2 {
		if len(got) != 10 || got[i] != "model.call model:small allow true true" || !strings.HasPrefix(got[i+1], "model.settle model_calls=") || ids[i] != ids[i+1] {
			t.Fatalf("%q", got)
		}
	}
	r.open()
	r.wantCalls(33, 0, 0)
}

// After a crash a spare counts in full, also with a call in it, and a settled amount counts
// once. The control is a process that ends by itself.
func TestSparesAfterACrash(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before        func(*rig)
		used, assumed int64
	}{
		"unused":      {func(r *rig) { r.call(4, 8); r.crash() }, 12, 8},
		"with a call": {func(r *rig) { r.call(4, 8); _, err := r.asks(4); must(r.t, err); r.crash() }, 12, 8},
		"settled":     {func(r *rig) { r.call(4, 8); r.call(3, 0); r.crash() }, 7, 0},
		"control":     {func(r *rig) { r.call(4, 8); r.close(); r.open() }, 4, 0},
	} {
		r := newSpending(t, "model_calls=1000")
		c.before(r)
		t.Log(name)
		r.wantCalls(c.used, 0, c.assumed)
		var assumed int64
		for _, e := range r.entries() {
			if e.Method == agents.BudgetSettle.Name && e.What == "model_calls=8" {
				assumed += 8
			}
		}
		if assumed != c.assumed {
			t.Errorf("the log has %d as assumed", assumed)
		}
	}
}

// At the end of a run, and at its next start, the unused rest is released; a call in a
// spare counts in full.
func TestTheEndOfARunEndsItsSpares(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rig) error{
		"end":   func(r *rig) error { return r.Happened(r.event(agent.RunEnded), "") },
		"start": func(r *rig) error { r.attach(true); return nil },
	} {
		r := newSpending(t)
		r.call(4, 8)
		must(t, end(r))
		t.Log(name)
		r.wantCalls(4, 0, 0)
		r.call(4, 8)
		id, err := r.asks(5)
		must(t, err)
		must(t, end(r))
		r.wantCalls(16, 0, 8)
		wantCode(t, r.Ledger.Settle(r.run, ledger.Settlement{Service: "model", Reservation: id, Used: budget.Amounts{budget.ModelCalls: 5}, Ahead: budget.Amounts{budget.ModelCalls: 5}}), api.CodeNotFound)
		r.wantCalls(16, 0, 8)
		calls := 0
		for _, e := range r.entries() {
			if e.Method == "model.call" && e.Verdict == audit.VerdictAllow {
				calls++
			}
		}
		if calls != 3 {
			t.Errorf("%d calls are in the log", calls)
		}
	}
}

// A spare blocks no call: it is a small part, it counts as left, and is given back to a
// call that needs it, also of another run of the user.
func TestSparesAreInNobodysWay(t *testing.T) {
	t.Parallel()
	r := newSpending(t)
	r.set(budget.OwnerKey(1000), "end", "model_calls=100")
	r.call(4, 12)
	r.wantCalls(4, 12, 0)
	r.call(4, 12) // 92 are left: an eighth is less
	r.wantCalls(8, 0, 0)
	r.call(4, 10)
	other := r.beside(newRun(1000, agent.Kernel{Grants: []string{"model:small"}}))
	standings := other.attach(true)
	latest(standings)
	if left, err := other.Ledger.Left(other.run, nil); err != nil || left.Free.Of(budget.ModelCalls) != 88 {
		t.Errorf("%+v, %v", left, err)
	}
	id, err := other.asks(88)
	must(t, err)
	r.wantCalls(12, 0, 0)
	if _, err := r.asks(1); !errors.Is(err, errTight) {
		t.Errorf("control: %v", err)
	}
	other.pays(id, 88, 1)
	_, err = other.asks(1)
	wantCode(t, err, api.CodeBudget)
}

// A limit that was set since is not passed by in a spare, and neither is a grant that was
// revoked, or has a number of uses.
func TestSparesFollowLimitsAndGrants(t *testing.T) {
	t.Parallel()
	r := newSpending(t)
	r.call(4, 8)
	r.set(budget.OwnerKey(1000), "refuse", "model_calls=3")
	_, err := r.asks(4)
	wantCode(t, err, api.CodeBudget)
	if quick := r.call(1, 0); quick {
		t.Error("a spare from before the limit is used")
	}
	r.set(budget.OwnerKey(1000), "refuse", "model_calls=1000")
	r.call(4, 8)
	for _, g := range r.grants() {
		_, err := r.asUser(1000, agents.GrantRevoke.Name, api.GrantRevokeParams{ID: g.ID})
		must(t, err)
	}
	_, err = r.asks(4)
	wantCode(t, err, api.CodeDenied)
	two := int64(2)
	_, err = r.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "model:small", Uses: &two})
	must(t, err)
	for range two {
		if r.call(4, 8) {
			t.Error("a use was not counted")
		}
	}
	_, err = r.asks(4)
	wantCode(t, err, api.CodeDenied)
}

// Calls at once, in spares or not, reserve no more together than there is.
func TestCallsInSparesNeverOvershoot(t *testing.T) {
	t.Parallel()
	const granted, callers = 500, 16
	r := newSpending(t, fmt.Sprintf("model_calls=%d,warn=%d", granted, granted))
	var all sync.WaitGroup
	var mu sync.Mutex
	var used, held int64
	for caller := range int64(callers) {
		all.Go(func() {
			size := 1 + caller%3
			for range 40 {
				id, err := r.asks(size)
				if err != nil {
					continue // what is left is too little, or others hold it
				}
				mu.Lock()
				if held += size; used+held > granted {
					t.Errorf("%d are used and %d reserved of %d", used, held, granted)
				}
				used, held = used+size, held-size
				mu.Unlock()
				r.pays(id, size, size+1)
			}
		})
	}
	all.Wait()
	must(t, r.Ledger.EndSpares(r.run.Spec.ID))
	r.wantCalls(used, 0, 0)
	if used < granted/2 || used > granted {
		t.Errorf("%d of %d are used", used, granted)
	}
}

// The last choice is reserved, also where several spares were looked at.
func TestTheLastChoiceHolds(t *testing.T) {
	t.Parallel()
	r := newSpending(t, "model_calls=1000")
	first, err := r.asks(1)
	must(t, err)
	second, err := r.asks(1)
	must(t, err)
	r.pays(first, 1, 4)
	r.pays(second, 1, 8)
	var chosen int64
	_, err = r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Fit: func(left budget.Left) (budget.Amounts, error) {
		chosen = left.Free.Of(budget.ModelCalls) - (1000 - 2 - 4 - 8)
		return budget.Amounts{budget.ModelCalls: chosen}, nil
	}})
	if must(t, err); chosen != 4 {
		t.Errorf("%d", chosen)
	}
	r.wantCalls(2, 12, 0)
}

// A spare that no call takes is given back after a while. The control is one that waits long.
func TestASpareThatNobodyTakesIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newSpending(t)
	r.call(4, 8)
	r.wantCalls(4, 8, 0)
	must(t, r.Ledger.EndSpares(r.run.Spec.ID))
	r.Ledger.SpareTime = time.Millisecond
	r.call(4, 8)
	for changed := r.Ledger.Changed(); r.line("model_calls").Reserved > 0; changed = r.Ledger.Changed() {
		<-changed
	}
	r.wantCalls(8, 0, 0)
}
