package daemon

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// waiting is a request about a queued run that has a log already, made by a start that was put
// off.
func (r *rig) waiting(forget bool) *request {
	r.t.Helper()
	s := spec("waits")
	s.Remove = forget
	_, err := r.records.enqueue(agent.Run{Spec: s, Owner: ownerCaller.owner})
	must(r.t, err)
	must(r.t, os.MkdirAll(r.d.options.Paths.Log(s.ID), 0o700))
	must(r.t, r.d.cache.refresh())
	c := r.as(ownerCaller)
	c.run, _ = r.d.cache.get(s.ID)
	return c
}

// A run with --rm that is ended in the queue leaves no log. The control is a run without --rm:
// its log goes with its record.
func TestDequeuedRunsLeaveNoLog(t *testing.T) {
	t.Parallel()
	for _, forget := range []bool{true, false} {
		r := newRig(t, nil)
		c := r.waiting(forget)
		must(t, r.d.runs().dequeue(c))
		if _, err := os.Lstat(r.d.options.Paths.Log(c.run.Spec.ID)); forget != errors.Is(err, fs.ErrNotExist) {
			t.Errorf("--rm %v: %v", forget, err)
		}
	}
}

// The first removal of a waiting run succeeds, although --rm removed the run with its end. A
// second removal gets the error that it does not exist.
func TestRemoveOfAWaitingRun(t *testing.T) {
	t.Parallel()
	for _, forget := range []bool{true, false} {
		r := newRig(t, nil)
		c := r.waiting(forget)
		p := api.RemoveParams{RunParams: api.RunParams{Run: "waits"}}
		if _, err := r.d.runs().remove(c, p); err != nil {
			t.Errorf("--rm %v: %v", forget, err)
		}
		_, err := r.d.runs().remove(c, p)
		wantCode(t, err, api.CodeNotFound)
	}
}
