package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

const serviceModels = "models"

// draw takes a block of model_calls.
func (r *rig) draw(amount int64) *Block {
	r.t.Helper()
	b, err := r.Draw(r.run, serviceModels, budget.Amounts{budget.ModelCalls: amount})
	must(r.t, err)
	return b
}

// hold reserves model_calls in a block.
func (r *rig) hold(b *Block, amount int64) *Hold {
	r.t.Helper()
	h, err := b.Reserve(budget.Amounts{budget.ModelCalls: amount})
	must(r.t, err)
	return h
}

// settles settles a hold, and returns what was beyond it.
func (r *rig) settles(h *Hold, amount int64) (over int64) {
	r.t.Helper()
	beyond, err := h.Settle(budget.Amounts{budget.ModelCalls: amount})
	must(r.t, err)
	return beyond[budget.ModelCalls]
}

// wantCalls compares the run's line of model_calls.
func (r *rig) wantCalls(used, reserved, assumed int64) {
	r.t.Helper()
	must(r.t, r.file.Read(func(tx *store.KernelTx) error {
		a, err := tx.Account(budget.RunKey(r.run.Owner.UID, r.run.Spec.ID))
		if err != nil {
			return err
		}
		if l := a.Lines[budget.ModelCalls]; l.Used != used || l.Reserved != reserved || l.Assumed != assumed {
			r.t.Errorf("%+v, want %d used, %d reserved, %d assumed", l, used, reserved, assumed)
		}
		return nil
	}))
}

// A block is taken from the run at once and counts when it ends. What happens in between
// is in memory. The log has one entry for each of the two.
func TestABlockIsSpentInMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"model_calls=100"}})
	b := r.draw(60)
	_, err := r.Draw(r.run, serviceModels, budget.Amounts{budget.ModelCalls: 41})
	wantCode(t, err, api.CodeBudget)
	for range 5 {
		h := r.hold(b, 10)
		r.settles(h, 4)
		if r.settles(h, 9) != 0 {
			t.Error("a hold is settled twice")
		}
	}
	must(t, r.hold(b, 40).Release())
	r.wantCalls(0, 60, 0)
	must(t, b.End())
	must(t, b.End())
	r.wantCalls(20, 0, 0)
	if _, err := b.Reserve(budget.Amounts{budget.ModelCalls: 1}); err == nil {
		t.Error("a block that has ended gives more")
	}
	var got []string
	for _, e := range r.entries() {
		if e.Principal == audit.PrincipalService(serviceModels) {
			got = append(got, fmt.Sprintf("%s %s %s", e.Verdict, e.Method, e.What))
		}
	}
	slices.Sort(got)
	if want := "allow budget.reserve model_calls=60, allow budget.settle model_calls=20, deny budget.reserve model_calls=41"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// Callers at once reserve no more than a block has, and none of what was not drawn.
func TestHoldsFitTheirBlock(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	b := r.draw(100)
	var all sync.WaitGroup
	var got atomic.Int64
	for range 100 {
		all.Go(func() {
			_, err := b.Reserve(budget.Amounts{budget.ModelCalls: 3})
			var over *budget.Exceeded
			if err == nil {
				got.Add(1)
			} else if !errors.As(err, &over) || over.Dimension != budget.ModelCalls {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got.Load() != 33 {
		t.Errorf("%d holds", got.Load())
	}
	var over *budget.Exceeded
	if _, err := b.Reserve(budget.Amounts{budget.CostMicros: 1}); !errors.As(err, &over) || over.Dimension != budget.CostMicros {
		t.Error(err)
	}
}

// After a crash a block is released where nothing was reserved in it, and counts in full
// otherwise, also where the run lives. The control is a block that was ended before.
func TestBlocksAfterACrash(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{true, false} {
		for name, c := range map[string]struct {
			before        func(*rig, *Block)
			used, assumed int64
		}{
			"nothing was reserved": {func(*rig, *Block) {}, 0, 0},
			"a hold is open":       {func(r *rig, b *Block) { r.hold(b, 5) }, 60, 60},
			"all is settled":       {func(r *rig, b *Block) { r.settles(r.hold(b, 5), 4) }, 60, 60},
			"it was released":      {func(r *rig, b *Block) { must(r.t, r.hold(b, 5).Release()) }, 60, 60},
			"it was ended":         {func(r *rig, b *Block) { r.settles(r.hold(b, 5), 4); must(r.t, b.End()) }, 4, 0},
		} {
			r := newRig(t, agent.Kernel{Budgets: []string{"model_calls=100"}})
			c.before(r, r.draw(60))
			r.close()
			r.open()
			must(t, r.Sweep(func(agent.ID) bool { return true }, func(agent.ID) bool { return lives }, nothing))
			t.Log(name)
			r.wantCalls(c.used, 0, c.assumed)
		}
	}
}

// nothing flies.
func nothing(budget.Reservation) bool { return false }

// A sweep leaves what a service may still use elsewhere, where the run lives. What is left then
// counts in full with Recover.
func TestASweepLeavesWhatFlies(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{true, false} {
		r := newRig(t, agent.Kernel{Grants: []string{"model:small"}, Budgets: []string{"model_calls=100"}})
		_, err := r.Reserve(r.run, Spending{Service: "model", Method: "model.call", What: "model:small", Fit: exactly(budget.Amounts{budget.ModelCalls: 60})})
		must(t, err)
		r.close()
		r.open()
		var left []string
		flies := func(res budget.Reservation) bool { left = append(left, res.ID); return true }
		must(t, r.Sweep(func(agent.ID) bool { return true }, func(agent.ID) bool { return lives }, flies))
		if lives {
			r.wantCalls(0, 60, 0)
		}
		must(t, r.Recover(func(res budget.Reservation) bool { return slices.Contains(left, res.ID) }))
		r.wantCalls(60, 0, 60)
	}
}

// A sweep leaves blocks in which a service works.
func TestASweepLeavesBlocksInUse(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	b := r.draw(60)
	h := r.hold(b, 10)
	always := func(agent.ID) bool { return true }
	must(t, r.Sweep(always, always, nothing))
	r.settles(h, 7)
	must(t, b.End())
	r.wantCalls(7, 0, 0)
}

// The end of a run, its next start and its removal end its blocks: with what was used, and
// in full where something is still under way. Settling comes too late then, but for what
// exceeds the hold.
func TestTheEndOfARunEndsItsBlocks(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*rig) error{
		"end":   func(r *rig) error { return r.Happened(r.event(agent.RunEnded), "") },
		"start": func(r *rig) error { r.attach(true); return nil },
	} {
		r := newRig(t, agent.Kernel{})
		b := r.draw(60)
		r.settles(r.hold(b, 10), 4)
		h := r.hold(b, 10)
		must(t, end(r))
		t.Log(name)
		r.wantCalls(14, 0, 10)
		if _, err := b.Reserve(budget.Amounts{budget.ModelCalls: 1}); err == nil {
			t.Error("its block gives more")
		}
		if over := r.settles(h, 12); over != 2 {
			t.Errorf("%d are over", over)
		}
		must(t, b.End())
		r.wantCalls(16, 0, 10)
	}
	r := newRig(t, agent.Kernel{})
	b := r.draw(60)
	r.hold(b, 1)
	must(t, r.Happened(r.event(agent.RunRemoved), ""))
	must(t, b.End())
	if got := r.rows(r.run.Spec.ID); got != "account false, 0 reservations, 0 grants" {
		t.Error(got)
	}
}

// What the end of an earlier start comes to tell leaves a block of this start.
func TestALateEndLeavesBlocksOfTheNextStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	late := r.event(agent.RunEnded)
	r.clock.Add(1)
	b := r.draw(60)
	h := r.hold(b, 10)
	must(t, r.Happened(late, ""))
	r.settles(h, 3)
	must(t, b.End())
	r.wantCalls(3, 0, 0)
}

// What exceeds a hold has happened: it is charged at once, durably, and the run's limits
// act on it. Tokens count once in their sum.
func TestWhatExceedsAHold(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"tokens=1000", "tokens_in=1000"}})
	standings := r.attach(false)
	receive(t, standings)
	b, err := r.Draw(r.run, serviceModels, budget.Amounts{budget.TokensIn: 500, budget.TokensOut: 100})
	must(t, err)
	h, err := b.Reserve(budget.Amounts{budget.TokensIn: 100, budget.TokensOut: 50})
	must(t, err)
	over, err := h.Settle(budget.Amounts{budget.TokensIn: 950, budget.TokensOut: 10})
	must(t, err)
	if over[budget.TokensIn] != 850 || over[budget.Tokens] != 850 || len(over) != 2 {
		t.Errorf("over: %v", over)
	}
	if got := texts(receive(t, standings)); got != "budget.warning, budget.warning" {
		t.Errorf("%q", got)
	}
	r.close()
	r.open() // as after a crash: the block counts in full, and what exceeded it is there
	always := func(agent.ID) bool { return true }
	must(t, r.Sweep(always, always, nothing))
	if l := r.line("tokens_in"); l.Used != 1350 || !l.Spent {
		t.Errorf("%+v", l)
	}
	if l := r.line("tokens"); l.Used != 1450 {
		t.Errorf("%+v", l)
	}
}

// The same without a crash: the sum is what was used.
func TestWhatExceedsAHoldIsCountedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{})
	b, err := r.Draw(r.run, serviceModels, budget.Amounts{budget.TokensIn: 500, budget.TokensOut: 100})
	must(t, err)
	h, err := b.Reserve(budget.Amounts{budget.TokensIn: 100, budget.TokensOut: 50})
	must(t, err)
	_, err = h.Settle(budget.Amounts{budget.TokensIn: 150, budget.TokensOut: 10})
	must(t, err)
	must(t, b.End())
	for dimension, want := range map[string]int64{"tokens_in": 150, "tokens_out": 10, "tokens": 160} {
		if l := r.line(dimension); l.Used != want || l.Reserved != 0 {
			t.Errorf("%+v, want %d", l, want)
		}
	}
}
