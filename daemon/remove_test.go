package daemon

import (
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// With force a run that waits is removed like one that runs.
func TestRemoveQueuedWithForce(t *testing.T) {
	r := newRig(t, nil)
	r.add("queued", agent.Owner{}, agent.StateQueued)
	c := r.serve()
	must(t, c.Remove(within(t), "queued", true))
	_, err := c.Get(within(t), "queued")
	wantCode(t, err, api.CodeNotFound)
}
