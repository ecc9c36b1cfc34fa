package daemon

import (
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/store"
)

// Spending is written beside the store, and causes no look through all runs.
// The control is a write to the store, as of another process.
func TestSpendingIsNoReasonToLook(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	run := r.add("own", agent.Owner{}, agent.StateRunning)
	must(t, r.d.reconciler.decidedAnew(within(t)))
	ended := func() <-chan struct{} {
		r.d.reconciler.mu.Lock()
		defer r.d.reconciler.mu.Unlock()
		return r.d.reconciler.ended
	}
	// A look may have another reason, such as the clock: one time without any is enough. A try
	// is short, or on a slow machine each has such a look.
	quiet := false
	for tries := 0; tries < 20 && !quiet; tries++ {
		next := ended()
		for range 20 {
			_, err := client.Do(within(t), c, methods.BudgetSet, api.BudgetSetParams{Account: "0/name:own", Limits: []string{"reviews=10"}})
			must(t, err)
		}
		select {
		case <-next:
		default:
			quiet = true
		}
	}
	if !quiet {
		t.Error("a look follows what is spent")
	}
	next := ended()
	must(t, r.records.with(func(s *store.Store) error {
		_, err := s.Amend(run.Spec.ID, agent.RunUpdated, "", func(*agent.Run) {})
		return err
	}))
	select {
	case <-next:
	case <-time.After(patience):
		t.Error("no look follows a write to the store")
	}
}
