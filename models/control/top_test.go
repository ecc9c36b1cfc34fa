package control

import (
	"fmt"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// activityOf returns that of one run.
func (r *rig) activityOf(run agent.Run) string {
	for _, a := range r.Activity() {
		if a.Run.Spec.ID == run.Spec.ID {
			return fmt.Sprint(a.Flying, a.Waiting, a.Models)
		}
	}
	return "none"
}

// Calls are in flight until they are paid, and wait until their provider has room.
func TestActivity(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, front := r.started()
	if got := r.activityOf(run); got != "0 0 []" {
		t.Errorf("before: %s", got)
	}
	front.begin(ask(1, run, "queued"))
	up := within(t, r.upstreams)
	first := within(t, up.up).Call.Number
	second := ask(2, run, "queued")
	front.send(link.FromFront{Begin: &second})
	r.waitsAt(ofProvider, "narrow", 1)
	if got := r.activityOf(run); got != "1 1 [queued]" {
		t.Errorf("one runs, one waits: %s", got)
	}
	up.send(link.FromUpstream{Done: &link.Done{Number: first, Status: 200, Sent: true, Usage: models.Usage{In: 1}}})
	within(t, r.ledger.settled)
	next := within(t, up.up).Call.Number
	for deadline := time.Now().Add(soon); r.activityOf(run) != "1 0 [queued]"; time.Sleep(time.Millisecond) { // the first is being paid
		if time.Now().After(deadline) {
			t.Fatalf("the second runs: %s", r.activityOf(run))
		}
	}
	up.send(link.FromUpstream{Done: &link.Done{Number: next, Status: 200, Sent: true}})
	within(t, r.ledger.settled)
	r.used() // it waits for calls that are being paid
	if got := r.activityOf(run); got != "0 0 [queued]" {
		t.Errorf("after: %s", got)
	}
}
