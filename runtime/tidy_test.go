package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// The next run removes what is left of a clove that was killed before it stored its run or
// after it stored the end. The controls must stay: a live run, a run with a lease in the
// store, a kept layer, and files that belong to no run.
func TestTheNextRunTidies(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	unnoted, ended, kept, odd := agent.NewID(), testSpec(), testSpec(), filepath.Join(r.paths.Run, "lost+found")
	for _, dir := range []string{r.paths.runDirectory(unnoted), r.paths.runDirectory(ended.ID), r.paths.runDirectory(kept.ID), odd,
		filepath.Join(r.paths.templates(), ".new-1")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []agent.ID{unnoted, ended.ID, kept.ID} {
		if err := os.WriteFile(r.paths.layer(id), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, spec := range []agent.Spec{ended, kept} {
		run := begin(t, r, spec)
		if err := r.conclude(run, agent.EventLost, r.lostRecord(run, &runDirectory{}), spec.ID == kept.ID); err != nil {
			t.Fatal(err)
		}
	}
	dead, leased := deadRun(t, r, nil)
	alive, err := newRunDirectory(r.paths, agent.NewID()) // not yet in the store
	if err != nil {
		t.Fatal(err)
	}
	defer alive.remove()
	var live map[agent.ID]bool
	if err := r.withStore(func(s *store.Store) (err error) { live, err = liveIDs(s); return err }); err != nil || len(live) != 1 || !live[dead.Spec.ID] {
		t.Fatalf("live: %v, %v", live, err)
	}
	if !r.tidy(live) {
		t.Error("it found nothing to do")
	}
	for _, gone := range []string{r.paths.runDirectory(unnoted), r.paths.runDirectory(ended.ID), r.paths.runDirectory(kept.ID),
		r.paths.layer(unnoted), r.paths.layer(ended.ID), filepath.Join(r.paths.templates(), ".new-1")} {
		if exists(gone) {
			t.Errorf("%s is left", gone)
		}
	}
	for _, there := range []string{r.paths.layer(kept.ID), leased, alive.path, odd} {
		if !exists(there) {
			t.Errorf("control: %s is gone", there)
		}
	}
	if r.tidy(live) {
		t.Error("control: it finds something again")
	}
	if _, err := r.GC(); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
