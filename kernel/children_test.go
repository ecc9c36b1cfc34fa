package kernel

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// childOf is a run that the agent of another has started.
func childOf(parent agent.Run, name string, has agent.Kernel) agent.Run {
	child := newRun(parent.Owner.UID, has)
	child.Spec.Name, child.Parent, child.Above = name, parent.Spec.ID, parent.Under()
	return child
}

// as attaches another run of the same kernel, and returns its rig.
func (r *rig) as(run agent.Run) *rig {
	r.t.Helper()
	other := &rig{t: r.t, Kernel: r.Kernel, dir: r.dir, file: r.file, log: r.log, run: run, config: r.config, manifests: r.manifests, runs: r.runs}
	other.attach(true)
	return other
}

// within decides something in a call of the run's agent.
func (r *rig) within(decide func(c *service.Call) (service.Outcome, error)) error {
	return r.engine.Within(r.run, "test", "", decide)
}

// own returns the run's own line of a dimension, as it is stored.
func (r *rig) own(d budget.Dimension) (line budget.Line) {
	r.t.Helper()
	must(r.t, r.engine.Read(func(tx *store.KernelTx) error {
		a, err := store.Accounts.Get(tx, string(budget.RunKey(r.run.Owner.UID, r.run.Spec.ID)))
		if err == nil && a != nil && a.Lines[d] != nil {
			line = *a.Lines[d]
		}
		return err
	}))
	return line
}

// spend reserves micro-dollars for a model.
func (r *rig) spend(micros int64) (id string, err error) {
	return r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "tool:fetch", Fit: exactly(budget.Amounts{budget.CostMicros: micros})})
}

// Four children reserve 64 times at once: in sum never a micro-dollar more than their parent may
// spend, and none is refused that would fit. The control is the same without the runs above them.
func TestChildrenNeverSpendMoreThanTheirParent(t *testing.T) {
	t.Parallel()
	const granted = 100_000
	for range 5 {
		for _, below := range []bool{true, false} {
			parent := newRig(t, agent.Kernel{Budgets: []string{"cost=0.1usd"}})
			var children []*rig
			for range 4 {
				run := childOf(parent.run, "child", agent.Kernel{Grants: []string{"tool:fetch"}})
				if !below {
					run.Parent, run.Above = "", nil
				}
				child := parent.as(run)
				if below {
					_, err := child.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:fetch"})
					must(t, err)
				}
				children = append(children, child)
			}
			var all sync.WaitGroup
			var got, least atomic.Int64
			least.Store(granted)
			for i := range 64 {
				micros := 1000 + rand.Int64N(4000)
				all.Go(func() {
					_, err := children[i%4].spend(micros)
					if err == nil {
						got.Add(micros)
						return
					}
					wantCode(t, err, api.CodeBudget)
					for {
						now := least.Load()
						if micros >= now || least.CompareAndSwap(now, micros) {
							return
						}
					}
				})
			}
			all.Wait()
			if line := parent.own(budget.CostMicros); below && (line.Reserved != got.Load() || line.Reserved > granted || line.Reserved+least.Load() <= granted) {
				t.Errorf("%d are reserved, %+v; %d did not fit", got.Load(), line, least.Load())
			}
			if !below && got.Load() <= granted {
				t.Errorf("control: %d are reserved without the parent's account", got.Load())
			}
			parent.close()
		}
	}
}

// What a child uses beyond a limit of its parent's acts on both as the parent's at_end says, and both
// go on when the parent gets more. The control is a run that is not below it.
func TestASpentParentActsOnItsChildren(t *testing.T) {
	t.Parallel()
	parent := newRig(t, agent.Kernel{Budgets: []string{"cost=0.1usd"}, AtEnd: "pause"})
	child := parent.as(childOf(parent.run, "child", agent.Kernel{Socket: true}))
	other := parent.as(newRun(1000, agent.Kernel{Socket: true}))
	_, err := child.asUser(1000, methods.GrantGive.Name, api.GrantGiveParams{Grant: "tool:fetch"})
	must(t, err)
	var standings []<-chan api.Standing
	for _, r := range []*rig{parent, child, other} {
		s := r.attach(false)
		<-s
		standings = append(standings, s)
	}
	id, err := child.spend(60_000)
	must(t, err)
	must(t, child.Ledger.Settle(child.run, ledger.Settlement{Service: "model", Reservation: id, Used: budget.Amounts{budget.CostMicros: 110_000}}))
	for i := range 2 {
		now := receive(t, standings[i])
		if len(now.Spent) != 1 || now.Spent[0].AtEnd != "pause" || now.Spent[0].Account != string(budget.RunKey(1000, parent.run.Spec.ID)) {
			t.Errorf("run %d: %+v", i, now)
		}
	}
	_, err = parent.asUser(1000, methods.BudgetRaise.Name, `{"amounts":{"cost_micros":100000}}`)
	must(t, err)
	for i := range 2 {
		if now := receive(t, standings[i]); len(now.Spent) != 0 {
			t.Errorf("run %d: %+v", i, now)
		}
	}
	if len(standings[2]) != 0 {
		t.Errorf("a run beside them: %+v", <-standings[2])
	}
}

// What a child says that it used fills its parent's account up to its limit, and ends or pauses
// neither the parent nor a child beside it. The control is the same charge by the parent itself.
func TestAChildsChargeEndsNoOtherRun(t *testing.T) {
	t.Parallel()
	parent := newRig(t, agent.Kernel{Budgets: []string{"reviews=10"}})
	child := parent.as(childOf(parent.run, "child", agent.Kernel{Budgets: []string{"reviews=100"}}))
	beside := parent.as(childOf(parent.run, "beside", agent.Kernel{Budgets: []string{"reviews=5"}}))
	at, over := parent.attach(false), beside.attach(false)
	<-at
	<-over
	child.charge("reviews", 50)
	if line := parent.own("reviews"); line.Used != 10 || line.Breached {
		t.Errorf("the parent: %+v", line)
	}
	for len(at) > 0 {
		if now := <-at; len(now.Spent) != 0 {
			t.Errorf("the parent: %+v", now)
		}
	}
	for len(over) > 0 {
		for _, b := range (<-over).Spent {
			if b.AtEnd != "refuse" {
				t.Errorf("a child beside it: %+v", b)
			}
		}
	}
	parent.charge("reviews", 1)
	if now := receive(t, at); len(now.Spent) != 1 || now.Spent[0].AtEnd != "end" {
		t.Errorf("control: %+v", now)
	}
}

// A run counts its live descendants: 64 starts at once get as many as it may have, a refusal ends
// nothing, and the end of a child makes room. The control is a run with room for all.
func TestARunHasSoManyChildren(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{"children=5": 5, "children=64": 64, "reviews=1": 16} {
		parent := newRig(t, agent.Kernel{Grants: []string{"spawn:writer"}, Budgets: []string{text}})
		standings := parent.attach(false)
		<-standings
		var all sync.WaitGroup
		var got atomic.Int64
		var started sync.Map
		for range 64 {
			all.Go(func() {
				id := agent.NewID()
				err := parent.within(func(c *service.Call) (service.Outcome, error) { return parent.budgets.ReserveChild(c, id) })
				if err == nil {
					started.Store(id, true)
					got.Add(1)
					return
				}
				wantCode(t, err, api.CodeBudget)
			})
		}
		all.Wait()
		if line := parent.own(budget.Children); got.Load() != want || line.Reserved != want || len(standings) != 0 {
			t.Errorf("%s: %d started, %+v, %d reports", text, got.Load(), line, len(standings))
		}
		started.Range(func(id, _ any) bool {
			for range 2 { // again is no error
				must(t, parent.within(func(c *service.Call) (service.Outcome, error) {
					return parent.budgets.ReleaseChild(c.Tx, parent.run, id.(agent.ID), c.Now)
				}))
			}
			return true
		})
		if line := parent.own(budget.Children); line.Reserved != 0 || line.Used != 0 {
			t.Errorf("%s: %+v", text, line)
		}
	}
}

// A descendant counts in every run above it. An agent neither settles nor releases that; the start of
// the run and a sweep of a new cloved do, where the child does not live.
func TestDescendantsCountInEveryRunAbove(t *testing.T) {
	t.Parallel()
	top := newRig(t, agent.Kernel{Grants: []string{"spawn:writer"}, Budgets: []string{"children=2"}})
	child := childOf(top.run, "child", agent.Kernel{Grants: []string{"spawn:writer"}, Budgets: []string{"children=8"}})
	start := func(r *rig, id agent.ID) error {
		return r.within(func(c *service.Call) (service.Outcome, error) { return r.budgets.ReserveChild(c, id) })
	}
	must(t, start(top, child.Spec.ID))
	middle, grandchild := top.as(child), agent.NewID()
	must(t, start(middle, grandchild))
	wantCode(t, start(middle, agent.NewID()), api.CodeBudget)
	for method, params := range map[string]any{
		agents.BudgetSettle.Name:  api.BudgetSettleParams{Reservation: string(grandchild), Amounts: map[string]int64{"reviews": 1}},
		agents.BudgetRelease.Name: api.BudgetReleaseParams{Reservation: string(grandchild)},
	} {
		_, err := middle.asAgent(method, params)
		wantCode(t, err, api.CodeNotFound)
	}
	must(t, top.Sweep(anyRun, anyRun, nothing))
	if top.own(budget.Children).Reserved != 2 || middle.own(budget.Children).Reserved != 1 {
		t.Errorf("%+v, %+v", top.own(budget.Children), middle.own(budget.Children))
	}
	must(t, top.Sweep(anyRun, func(id agent.ID) bool { return id != grandchild }, nothing))
	if top.own(budget.Children).Reserved != 1 || middle.own(budget.Children).Reserved != 0 {
		t.Errorf("%+v, %+v", top.own(budget.Children), middle.own(budget.Children))
	}
	top.attach(true)
	if line := top.own(budget.Children); line.Reserved != 0 {
		t.Errorf("%+v", line)
	}
	plain := newRig(t, agent.Kernel{Socket: true})
	wantCode(t, start(plain, agent.NewID()), api.CodeDenied)
}

// A run that goes on after its parent was removed settles what it had reserved there.
func TestAnAccountAboveMayBeGone(t *testing.T) {
	t.Parallel()
	parent := newRig(t, agent.Kernel{Budgets: []string{"reviews=100"}})
	child := parent.as(childOf(parent.run, "child", agent.Kernel{Budgets: []string{"reviews=50"}}))
	id := child.reserve("reviews", 20)
	must(t, parent.Happened(agent.RunEvent{Kind: agent.RunRemoved, ID: parent.run.Spec.ID, Name: "worker", Owner: parent.run.Owner}, ""))
	_, err := child.asAgent(agents.BudgetSettle.Name, api.BudgetSettleParams{Reservation: id, Amounts: map[string]int64{"reviews": 7}})
	must(t, err)
	if line := child.own("reviews"); line.Used != 7 || line.Reserved != 0 {
		t.Errorf("%+v", line)
	}
}

func anyRun(agent.ID) bool { return true }
