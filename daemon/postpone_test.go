package daemon

import (
	"errors"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// unwritable is a rig whose store takes no record of a failed start.
type unwritable struct{ *rig }

func (unwritable) Refuse(agent.ID, error) error { return errors.New("there is no space") }

// A start that fails and whose failure cannot be stored is tried again after a pause, and the
// caller gets the reason for the wait. Without the pause the reconciler would start
// supervisors as fast as it can.
func TestFailedStartIsHeldBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.refuse["held"] = true
	r.d.reconciler.sandboxes = unwritable{r}
	r.d.reconciler.retry = retryTime / 20
	c := r.serve()
	result, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("held")})
	must(t, err)
	if result.Run.State != agent.StateQueued || !strings.Contains(result.Reason, "tried again") || !strings.Contains(result.Reason, "cannot hold it") {
		t.Errorf("%s, %q", result.Run.State, result.Reason)
	}
	r.mu.Lock()
	r.refuse["held"] = false
	r.mu.Unlock()
	_, _, err = r.d.cache.until(within(t), result.Run.Spec.ID, func(run agent.Run, _ bool) bool { return run.State == agent.StateRunning })
	must(t, err)
	if tries := len(r.names()); tries > 5 {
		t.Errorf("%d tries within a moment", tries)
	}
}
