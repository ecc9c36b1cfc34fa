package service

import (
	"context"
	"testing"

	"clove.run/clove/api"
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

// Where notices can go to the agent directly, its supervisor gets none but the warnings of budgets, which it shows;
// and those that cannot, until that ends.
func TestNoticesGoDirectly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := newRun()
	standings := r.attach(other)
	var came []api.Notice
	takes := true
	leave := r.Notices(other.Spec.ID, func(all []api.Notice) bool {
		if takes {
			came = append(came, all...)
		}
		return takes
	})
	tell := func() {
		t.Helper()
		_, err := r.asAgent(context.Background(), tellRow.Name, tellParams{other.Spec.ID})
		must(t, err)
	}
	tell()
	if len(came) != 1 || came[0].Method != "note.told" || len(standings) != 0 {
		t.Errorf("%+v came, and %d by the supervisor", came, len(standings))
	}
	must(t, r.notify(other.Spec.ID, []api.Notice{{Method: api.NoteBudgetWarning}}))
	takes = false
	tell()
	stale := r.Notices(other.Spec.ID, func([]api.Notice) bool { return false })
	leave([]api.Notice{{Method: "note.left"}})
	takes = true
	tell()
	stale(nil)
	tell()
	if len(came) != 1 || len(standings) != 5 {
		t.Fatalf("%+v came, and %d by the supervisor", came, len(standings))
	}
	for _, want := range []string{api.NoteBudgetWarning, "note.told", "note.left", "note.told", "note.told"} {
		if now := <-standings; len(now.Notices) != 1 || now.Notices[0].Method != want {
			t.Errorf("%+v, want %s", now.Notices, want)
		}
	}
}
