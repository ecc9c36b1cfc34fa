package service

import (
	"context"
	"testing"
)

// A notice for another run reaches its supervisor with the standing that it has, which is not read
// again. A run without a supervisor gets none.
func TestNoticesReachAnyRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := newRun()
	standings := r.attach(other)
	stood := r.stages.stood
	for range 2 {
		_, err := r.asAgent(context.Background(), tellRow.Name, tellParams{other.Spec.ID})
		must(t, err)
		now := <-standings
		if len(now.Notices) != 1 || now.Notices[0].Method != "note.told" || now.Notices[0].Key != "a" || now.Start != 1 {
			t.Errorf("%+v", now)
		}
	}
	_, err := r.asAgent(context.Background(), tellRow.Name, tellParams{newRun().Spec.ID})
	must(t, err)
	if r.stages.stood != stood || len(standings) != 0 {
		t.Errorf("%d standings are read, %d reported", r.stages.stood-stood, len(standings))
	}
}
