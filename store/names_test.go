package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// runOf returns a new run of a user.
func runOf(uid uint32, name string) agent.Run {
	run := newRun(name)
	run.Owner = agent.Owner{UID: uid, GID: uid}
	return run
}

// Two owners use the same name at the same time, each for a run of their own. One owner can
// use it once.
func TestNamesAreUniqueForEachOwner(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	ids := map[uint32]agent.ID{}
	for _, uid := range []uint32{0, 1000, 1001} {
		run, err := s.Enqueue(runOf(uid, "web"))
		must(t, err)
		ids[uid] = run.Spec.ID
		_, err = s.Enqueue(runOf(uid, "web"))
		wantKind(t, err, agent.KindConflict)
		_, err = s.Begin(run) // from the queue, under its own name
		must(t, err)
	}
	for ref, uid := range map[string]uint32{"web": 0, "0/web": 0, "1000/web": 1000, "1001/web": 1001} {
		if run, err := s.Get(ref); err != nil || run.Spec.ID != ids[uid] {
			t.Errorf("%s: %s, %v", ref, run.Spec.ID, err)
		}
	}
	_, err := s.Finish(ids[1000], agent.EventRecorded, recordOf(agent.Spec{ID: ids[1000], Name: "web"}), nil)
	must(t, err)
	must(t, s.Remove(ids[1000]))
	if _, err := s.Get("1000/web"); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("a removed run's name: %v", err)
	}
	for _, uid := range []uint32{0, 1001} {
		if run, err := s.Get(string(ids[uid])); err != nil || run.State != agent.StateStarting {
			t.Errorf("the other owner's run: %v", err)
		}
	}
}

// A run is renamed among the names of its owner.
func TestRenameStaysWithTheOwner(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	mine, err := s.Enqueue(runOf(1000, "one"))
	must(t, err)
	_, err = s.Enqueue(runOf(1001, "two"))
	must(t, err)
	_, err = s.Enqueue(runOf(1000, "three"))
	must(t, err)
	_, err = s.Rename(mine.Spec.ID, "three")
	wantKind(t, err, agent.KindConflict)
	_, err = s.Rename(mine.Spec.ID, "1001/free")
	wantKind(t, err, agent.KindInvalid)
	renamed, err := s.Rename(mine.Spec.ID, "two")
	if err != nil || renamed.Owner.UID != 1000 {
		t.Errorf("%+v, %v", renamed, err)
	}
	if run, err := s.Get("1000/two"); err != nil || run.Spec.ID != mine.Spec.ID {
		t.Errorf("%+v, %v", run, err)
	}
}

// A file of schema 2, as the previous version wrote it: names have no owner in their key, and
// a run of root's names a user's run by its bare name in --after.
func TestSchema2IsMigrated(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"00000000000000a1": `{"spec":{"id":"00000000000000a1","name":"first","command":["true"]},"state":"queued","owner":{"uid":1000,"gid":1000},"created":"2026-01-02T12:00:00Z"}`,
		"00000000000000a2": `{"spec":{"id":"00000000000000a2","name":"roots","command":["true"]},"state":"queued","created":"2026-01-02T12:00:00Z"}`,
		"00000000000000a3": `{"spec":{"id":"00000000000000a3","name":"second","command":["true"],"after":["first","roots","gone"]},"state":"queued","created":"2026-01-02T12:00:00Z"}`,
		"00000000000000a4": `{"spec":{"id":"00000000000000a4","name":"theirs","command":["true"],"after":["first"]},"state":"queued","owner":{"uid":1000,"gid":1000},"created":"2026-01-02T12:00:00Z"}`,
	}
	names := map[string]string{"first": "00000000000000a1", "roots": "00000000000000a2", "second": "00000000000000a3", "theirs": "00000000000000a4"}
	path := writeBolt(t, func(tx *bbolt.Tx) error {
		err := withSteps(migrations[:2]).migrate(tx)
		for id, value := range values {
			err = firstOf(err, tx.Bucket(bucketRuns).Put([]byte(id), []byte(value)))
		}
		for name, id := range names {
			err = firstOf(err, tx.Bucket(bucketNames).Put([]byte(name), []byte(id)))
		}
		return err
	})
	before, err := os.ReadFile(path)
	must(t, err)
	s := open(t, path) // and the closing check compares the index with the runs
	for ref, id := range map[string]string{"1000/first": "00000000000000a1", "roots": "00000000000000a2", "0/second": "00000000000000a3", "1000/theirs": "00000000000000a4"} {
		if run, err := s.Get(ref); err != nil || string(run.Spec.ID) != id {
			t.Errorf("%s: %+v, %v", ref, run.Spec, err)
		}
	}
	for ref, after := range map[string][]string{"second": {"1000/first", "roots", "gone"}, "1000/theirs": {"first"}} {
		if run, err := s.Get(ref); err != nil || !slices.Equal(run.Spec.After, after) || run.State != agent.StateQueued || run.Created.Year() != 2026 {
			t.Errorf("%s comes after %q, %v", ref, run.Spec.After, err)
		}
	}
	// The migration cannot be undone: a copy of the original stays for the previous version.
	kept, err := filepath.Glob(path + ".schema*")
	must(t, err)
	if text, err := os.ReadFile(path + ".schema2"); err != nil || !slices.Equal(text, before) || len(kept) != 1 {
		t.Errorf("%q is kept, %v", kept, err)
	}
}

// Data that cannot be decoded ends the migration, and the file stays unchanged.
func TestAMigrationThatFailsLeavesSchema2(t *testing.T) {
	t.Parallel()
	path := writeBolt(t, func(tx *bbolt.Tx) error {
		return firstOf(withSteps(migrations[:2]).migrate(tx), tx.Bucket(bucketRuns).Put([]byte("00000000000000a1"), []byte("{")))
	})
	noEpilogue(t, path)
	before, err := os.ReadFile(path)
	must(t, err)
	_, err = Open(path, patience)
	wantKind(t, err, agent.KindInternal)
	if after, err := os.ReadFile(path); err != nil || !slices.Equal(before, after) {
		t.Errorf("the file was changed (%v)", err)
	}
}

// Every run of the store's owner is found by its name, whatever names others use.
func TestRootsBareNamesAreRootsOwn(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	theirs, err := s.Enqueue(runOf(1000, "abcd"))
	must(t, err)
	other := runOf(0, "other")
	other.Spec.ID = "abcd000000000000"
	_, err = s.Enqueue(other)
	must(t, err)
	// Not another user's run, and not root's run whose id begins like that name: that could be
	// a mistake.
	_, err = s.Get("abcd")
	if known := wantKind(t, err, agent.KindNotFound); known.Hint != "name the owner too: 1000/abcd; clove ps -a lists the runs" {
		t.Errorf("the hint is %q", known.Hint)
	}
	for ref, id := range map[string]agent.ID{"abcd0": other.Spec.ID, string(theirs.Spec.ID): theirs.Spec.ID, fmt.Sprintf("%.8s", theirs.Spec.ID): theirs.Spec.ID} {
		if run, err := s.Get(ref); err != nil || run.Spec.ID != id {
			t.Errorf("%s: %v", ref, err)
		}
	}
	_, err = s.Get("1000/abcd/x")
	wantKind(t, err, agent.KindInvalid)
}
