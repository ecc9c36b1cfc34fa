package kernel

import (
	"clove.run/clove/kernel/ledger"
	"slices"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// wantCalls compares the run's line of model_calls.
func (r *rig) wantCalls(used, reserved, assumed int64) {
	r.t.Helper()
	must(r.t, r.file.Read(func(tx *store.KernelTx) error {
		a, err := store.Accounts.Get(tx, string(budget.RunKey(r.run.Owner.UID, r.run.Spec.ID)))
		if err != nil {
			return err
		}
		if l := a.Lines[budget.ModelCalls]; l.Used != used || l.Reserved != reserved || l.Assumed != assumed {
			r.t.Errorf("%+v, want %d used, %d reserved, %d assumed", l, used, reserved, assumed)
		}
		return nil
	}))
}

// nothing flies.
func nothing(budget.Reservation) bool { return false }

// A sweep leaves reservations that a service may still use elsewhere, where the run lives. They
// count in full with Recover.
func TestASweepLeavesWhatFlies(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{true, false} {
		r := newRig(t, agent.Kernel{Grants: []string{"model:small"}, Budgets: []string{"model_calls=100"}})
		_, err := r.Ledger.Reserve(r.run, ledger.Spending{Service: "model", Method: "model.call", What: "model:small", Fit: exactly(budget.Amounts{budget.ModelCalls: 60})})
		must(t, err)
		r.close()
		r.open()
		var left []string
		flies := func(res budget.Reservation) bool { left = append(left, res.ID); return true }
		must(t, r.Sweep(func(agent.ID) bool { return true }, func(agent.ID) bool { return lives }, flies))
		if lives {
			r.wantCalls(0, 60, 0)
		}
		must(t, r.Ledger.Recover(func(res budget.Reservation) bool { return slices.Contains(left, res.ID) }))
		r.wantCalls(60, 0, 60)
	}
}
