package kernel

import (
	"fmt"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/audit"
)

// fullLog is a real log whose Append fails as on a full disk while full is set: the reserve
// is left.
type fullLog struct {
	*audit.Log
	full atomic.Bool
}

func (l *fullLog) Append(entries ...audit.Entry) (uint64, error) {
	if err := l.Room(); err != nil {
		return 0, err
	}
	return l.Log.Append(entries...)
}

func (l *fullLog) Room() error {
	if l.full.Load() {
		return fmt.Errorf("%w: %w", audit.ErrStorage, unix.ENOSPC)
	}
	return nil
}

// While the log has no space, past decisions and the ends of runs go into its reserve, and a call
// that would change something is refused. It goes on when there is space again.
func TestAFullLogRefusesDecisions(t *testing.T) {
	t.Parallel()
	r := newRig(t, agent.Kernel{Budgets: []string{"reviews=10"}})
	log := &fullLog{Log: r.log}
	must(t, r.Kernel.Close())
	log.full.Store(true)
	c := r.config
	c.Log = log
	r.serve(c)
	charge := func() error {
		_, err := r.asAgent(agents.BudgetCharge.Name, `{"amounts":{"reviews":1}}`)
		return err
	}
	wantCode(t, charge(), api.CodeStorage)
	_, err := r.SetBudget(0, api.BudgetSetParams{Account: "1000", Limits: []string{"reviews=5"}})
	wantCode(t, err, api.CodeStorage)
	_, err = r.asAgent(agents.BudgetGet.Name, `{}`)
	must(t, err) // it changes nothing
	must(t, r.Happened(r.event(agent.RunEnded), ""))
	log.full.Store(false)
	must(t, charge())
	var kinds []audit.Kind
	for _, e := range r.entries() {
		if e.Verdict != audit.VerdictDeny {
			kinds = append(kinds, e.Kind)
		}
	}
	if fmt.Sprint(kinds) != "[start end decision]" {
		t.Errorf("%v", kinds)
	}
}
