package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// loseStore takes the store away, as docs/operations.md says for a damaged one.
func loseStore(t *testing.T, r *Runtime) {
	t.Helper()
	if err := os.Rename(r.paths.database(), r.paths.database()+".damaged"); err != nil {
		t.Fatal(err)
	}
}

// writeLog makes the log of a run with a file of this text in it.
func writeLog(t *testing.T, r *Runtime, run agent.Run, file, text string) {
	t.Helper()
	dir := r.paths.Log(run.Spec.ID)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600), r.paths.describeLog(run)); err != nil {
		t.Fatal(err)
	}
}

// keptRun is a run that has ended, with its layer and its log.
func keptRun(t *testing.T, r *Runtime, owner agent.Owner) agent.Run {
	t.Helper()
	run, _ := deadRun(t, r, nil)
	run.Owner = owner
	makeLayer(t, r, run, true)
	writeLog(t, r, run, "log", "output")
	apply(t, r, run, agent.EventStarted)
	if _, err := r.Clean(); err != nil {
		t.Fatal(err)
	}
	return run
}

// Layers and logs without a record are kept, through any number of clean-ups, of cloved and in the
// foreground. The control, in the same directories and by the same clean-up: a layer that no agent
// wrote to and a log without output are deleted.
func TestWhatHasNoRecordIsKept(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run := keptRun(t, r, agent.Owner{UID: 1234, GID: 5})
	unknown := r.paths.layer(agent.NewID())
	if err := os.WriteFile(unknown, []byte("old"), 0o600); err != nil { // of a clove that wrote no descriptions
		t.Fatal(err)
	}
	untouched, silent := testSpec(), testSpec()
	makeLayer(t, r, agent.Run{Spec: untouched}, false)
	writeLog(t, r, agent.Run{Spec: silent}, "log", "")
	writeLog(t, r, agent.Run{Spec: silent}, SupervisorOutput, "it was removed before it started")
	loseStore(t, r)

	if _, err := r.Clean(); err != nil {
		t.Fatal(err)
	}
	if left := slices.Concat(entriesOf(r.paths.layers()), entriesOf(r.paths.logs())); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	place := filepath.Join(r.paths.lost(), string(run.Spec.ID))
	oldID := strings.TrimSuffix(filepath.Base(unknown), layerSuffix)
	want := []string{string(run.Spec.ID), oldID}
	slices.Sort(want)
	for range 2 {
		if got := entriesOf(r.paths.lost()); !slices.Equal(got, want) {
			t.Fatalf("kept are %q, want %q", got, want)
		}
		for path, text := range map[string]string{filepath.Join(place, lostLayer): "work", filepath.Join(place, lostLog, "log"): "output",
			filepath.Join(r.paths.lost(), oldID, lostLayer): "old"} {
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("%s: %q, %v", path, got, err)
			}
		}
		if removed, err := r.GC(); err != nil || len(removed) != 0 {
			t.Errorf("gc again: %v, %v", removed, err)
		}
		r.tidy(nil)
	}
	found, err := r.Check()
	if err != nil || len(found) != 2 || !found[0].Note || !found[1].Note {
		t.Errorf("check: %+v, %v", found, err)
	}
	text := found[0].Message + found[1].Message
	for _, part := range []string{"the layer and the log of " + run.Spec.Name, "user 1234", "the layer of an unknown run"} {
		if !strings.Contains(text, part) {
			t.Errorf("check does not say %q: %s", part, text)
		}
	}
	for reference, owner := range map[string]uint32{string(run.Spec.ID): 1234, oldID: 0} {
		if run, err := r.paths.LostRun(LostPrefix + reference); err != nil || run.Owner.UID != owner || run.Layer == "" {
			t.Errorf("%s: %+v, %v", reference, run, err)
		}
	}
}

// A store that is an older copy knows the run and not its layer: the layer is kept when the run is
// looked at, and when it starts.
func TestAnOlderStoreKeepsTheLayer(t *testing.T) {
	t.Parallel()
	for name, release := range map[string]func(*Runtime, agent.Run) error{
		"at the clean-up": func(r *Runtime, _ agent.Run) error { _, err := r.Clean(); return err },
		"at the start":    func(r *Runtime, run agent.Run) error { _, err := r.paths.releaseLayer(run.Spec.ID); return err },
	} {
		t.Run(name, func(t *testing.T) {
			r := testRuntime(t)
			run, path := deadRun(t, r, nil)
			record := r.lostRecord(run, &runDirectory{path: path})
			if err := r.conclude(run, agent.EventLost, record, false); err != nil {
				t.Fatal(err)
			}
			makeLayer(t, r, run, true)
			if err := release(r, run); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(filepath.Join(r.paths.lost(), string(run.Spec.ID), lostLayer)); string(text) != "work" {
				t.Errorf("%q, %v", text, err)
			}
		})
	}
}

// A second layer with the same id has a place of its own. A clove that is killed between the move
// of a description and that of its image leaves what the next one completes.
func TestEachLostLayerHasItsPlace(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	spec := testSpec()
	for _, uid := range []uint32{1, 2} {
		makeLayer(t, r, agent.Run{Spec: spec, Owner: agent.Owner{UID: uid}}, true)
		if uid == 2 {
			dir, err := r.paths.lostPlace(spec.ID, lostLayer)
			if err == nil {
				err = os.Rename(described(r.paths.layer(spec.ID)), filepath.Join(dir, descriptionFile))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Clean(); err != nil {
			t.Fatal(err)
		}
	}
	for reference, uid := range map[string]uint32{string(spec.ID): 1, string(spec.ID) + "-2": 2} {
		if run, err := r.paths.LostRun(LostPrefix + reference); err != nil || run.Owner.UID != uid || run.Layer == "" {
			t.Errorf("%s: %+v, %v", reference, run, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "../layers", string(spec.ID) + "/..", string(spec.ID) + "-3", string(spec.ID) + "-2/../x", "0", strings.ToUpper(string(spec.ID)) + "Z"} {
		if run, err := r.paths.LostRun(LostPrefix + bad); agent.KindOf(err) != agent.KindNotFound {
			t.Errorf("%q: %+v, %v", bad, run, err)
		}
	}
}

// The log of another run says nothing about the owner of a layer beside it.
func TestALogDoesNotNameTheOwnerOfALayer(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	spec := testSpec()
	writeLog(t, r, agent.Run{Spec: spec, Owner: agent.Owner{UID: 7}}, "log", "output")
	if _, err := r.Clean(); err != nil {
		t.Fatal(err)
	}
	if run, err := r.paths.LostRun(LostPrefix + string(spec.ID)); err != nil || run.Owner.UID != 7 {
		t.Fatalf("control: %+v, %v", run, err)
	}
	if _, err := r.Diff(LostPrefix+string(spec.ID), "", nil); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("diff of a log: %v", err)
	}
	if err := os.WriteFile(r.paths.layer(spec.ID), []byte("root's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Clean(); err != nil {
		t.Fatal(err)
	}
	if run, err := r.paths.LostRun(LostPrefix + string(spec.ID)); err != nil || run.Owner.UID != 0 {
		t.Errorf("%+v, %v", run, err)
	}
}

// RemoveLost removes what came before a time, and finishes what a killed clove left of that.
func TestRemoveLostByAge(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	old, young := testSpec(), testSpec()
	for _, spec := range []agent.Spec{old, young} {
		makeLayer(t, r, agent.Run{Spec: spec}, true)
	}
	if _, err := r.Clean(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(r.paths.lost(), string(old.ID)), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if removed, err := r.RemoveLost(time.Now().Add(-time.Minute)); err != nil || len(removed) != 1 || removed[0].Subject != LostPrefix+string(old.ID) {
		t.Errorf("%v, %v", removed, err)
	}
	left := filepath.Join(r.paths.lost(), string(young.ID))
	if err := os.Rename(left, filepath.Join(r.paths.lost(), lostRemoved+string(young.ID))); err != nil {
		t.Fatal(err)
	}
	if found := r.Lost(); len(found) != 0 {
		t.Errorf("half removed, and shown: %v", found)
	}
	if _, err := r.Clean(); err != nil || len(entriesOf(r.paths.lost())) != 0 {
		t.Errorf("left: %q, %v", entriesOf(r.paths.lost()), err)
	}
}

// A removal deletes the files first: one that is interrupted leaves a run that can be removed
// again, and nothing that would be kept as lost.
func TestRemovalsBeginWithTheFiles(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run := keptRun(t, r, agent.Owner{})
	stored, err := r.Get(string(run.Spec.ID))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.removeFiles(stored); err != nil {
		t.Fatal(err)
	}
	if left := slices.Concat(entriesOf(r.paths.layers()), entriesOf(r.paths.logs())); len(left) != 0 {
		t.Errorf("left are %q", left)
	}
	if _, err := r.Clean(); err != nil || len(r.Lost()) != 0 {
		t.Errorf("lost: %v, %v", r.Lost(), err)
	}
	var failure *agent.Error
	if _, err := r.openKept(stored); !errors.As(err, &failure) || failure.Hint == "" {
		t.Errorf("diff of it: %v", err)
	}
	if err := r.Remove(run.Spec.Name); err != nil {
		t.Error(err)
	}
}

// A fresh start deletes the layer before the store forgets it.
func TestAFreshStartDeletesTheLayerFirst(t *testing.T) {
	t.Parallel()
	for _, fresh := range []bool{true, false} {
		r := testRuntime(t)
		run := keptRun(t, r, agent.Owner{})
		err := r.withStore(func(s *store.Store) error {
			queued, err := s.Requeue(run.Spec.ID, func(run *agent.Run) { run.Queue.Fresh = fresh })
			return errors.Join(err, r.removeStale(queued))
		})
		if err != nil || exists(r.paths.layer(run.Spec.ID)) == fresh {
			t.Errorf("fresh %v: the layer is there: %v, %v", fresh, exists(r.paths.layer(run.Spec.ID)), err)
		}
	}
}

// A new name is in the descriptions, too.
func TestDescriptionsFollowTheName(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run := keptRun(t, r, agent.Owner{})
	run.Spec.Name = "renamed"
	if err := r.paths.Renamed(run); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{described(r.paths.layer(run.Spec.ID)), filepath.Join(r.paths.Log(run.Spec.ID), descriptionFile)} {
		if d := readDescription(path); d == nil || d.Name != "renamed" || d.ID != run.Spec.ID || d.HostID != run.Lease.HostID() || d.Begun.IsZero() {
			t.Errorf("%s: %+v", path, d)
		}
	}
}

// Only what lies below lost/ takes another directory, and only a canonical one.
func TestWhereToIsTaken(t *testing.T) {
	t.Parallel()
	lost := agent.Run{Layer: "/x", Spec: agent.Spec{ID: LostPrefix + "1", Files: agent.Files{Workspace: "/own"}}}
	other := agent.Run{Layer: "/x", Spec: agent.Spec{ID: agent.NewID()}}
	for name, row := range map[string]struct {
		run      agent.Run
		to, want string
	}{
		"its own":   {lost, "", "/own"},
		"another":   {lost, "/other", "/other"},
		"relative":  {lost, "other", "refused"},
		"not clean": {lost, "/other/../x", "refused"},
		"not lost":  {other, "/other", "refused"},
	} {
		reading := Reading{Run: row.run, To: row.to}
		err := reading.direct()
		if got := reading.Run.Spec.Files.Workspace; (err != nil) != (row.want == "refused") || err == nil && got != row.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
