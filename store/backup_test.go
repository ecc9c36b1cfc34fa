package store

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// A file of schema 1, with a run in it, is migrated to the newest schema; a copy of the
// original stays beside it and can still be read as schema 1.
func TestOlderSchemaIsMigratedAndKept(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/state/clove.db"
	s := open(t, path)
	run, err := s.Begin(newRun("old"))
	must(t, err)
	must(t, s.update(func(tb *tables) error {
		return firstOf(tb.tx.DeleteBucket(bucketEvents), runsFormat.setSchema(tb.tx, 1))
	}))
	must(t, s.Close())

	s = open(t, path)
	if got, err := s.Get("old"); err != nil || got.Spec.ID != run.Spec.ID || got.State != agent.StateStarting {
		t.Errorf("%+v, %v", got, err)
	}
	if problems, err := s.Check(); err != nil || problems != nil {
		t.Errorf("%v, %v", problems, err)
	}
	if _, err := s.Amend(run.Spec.ID, agent.RunUpdated, "", func(*agent.Run) {}); err != nil {
		t.Error(err)
	}
	kept, err := bbolt.Open(path+".schema1", 0o600, &bbolt.Options{ReadOnly: true})
	must(t, err)
	defer kept.Close()
	must(t, kept.View(func(tx *bbolt.Tx) error {
		if version, err := runsFormat.schemaOf(tx); err != nil || version != 1 || tx.Bucket(bucketRuns).Get([]byte(run.Spec.ID)) == nil {
			t.Errorf("the copy has schema %d, %v", version, err)
		}
		return nil
	}))
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".clove-*")); err != nil || left != nil {
		t.Errorf("half a copy is left: %q, %v", left, err)
	}
}

// For a new file there is no copy.
func TestNewFileHasNoCopy(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/state/clove.db"
	open(t, path)
	if _, err := os.Stat(path + ".schema0"); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}

// An event is numbered in the transaction of its change, and the oldest events are dropped.
func TestEventsAreNumberedAndBounded(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	s.db.NoSync = true
	run, err := s.Enqueue(newRun("one"))
	must(t, err)
	must(t, s.update(func(tb *tables) error {
		for range maxEvents {
			if err := tb.note(run, agent.RunUpdated, ""); err != nil {
				return err
			}
		}
		return nil
	}))
	all, last, err := s.Events(0, 2*maxEvents)
	if err != nil || len(all) != maxEvents || last != maxEvents+1 || all[0].Sequence != 2 {
		t.Errorf("%d of %d, from %d, %v", len(all), last, all[0].Sequence, err)
	}
	some, _, err := s.Events(last-3, 2)
	if err != nil || len(some) != 2 || some[0].Sequence != last-2 {
		t.Errorf("%+v, %v", some, err)
	}
	before, err := Revision(s.path)
	must(t, err)
	must(t, s.Remove(mustEnd(t, s, run.Spec)))
	if after, err := Revision(s.path); err != nil || after <= before {
		t.Errorf("revision %d after %d, %v", after, before, err)
	}
	some, _, err = s.Events(last, 10)
	if err != nil || len(some) != 2 || some[1].Kind != agent.RunRemoved || some[1].State != "" || some[0].ExitCode == nil {
		t.Errorf("%+v, %v", some, err)
	}
}

func mustEnd(t *testing.T, s *Store, spec agent.Spec) agent.ID {
	t.Helper()
	_, err := s.Finish(spec.ID, agent.EventRecorded, recordOf(spec), nil)
	must(t, err)
	return spec.ID
}

func TestRename(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	run, err := s.Enqueue(newRun("one"))
	must(t, err)
	_, err = s.Enqueue(newRun("two"))
	must(t, err)
	for _, bad := range []string{"two", "../x", "0123456789abcdef"} {
		if _, err := s.Rename(run.Spec.ID, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	mustEnd(t, s, run.Spec)
	renamed, err := s.Rename(run.Spec.ID, "three")
	if err != nil || renamed.Spec.Name != "three" || renamed.Record.Name != "three" {
		t.Errorf("%+v, %v", renamed, err)
	}
	if _, err := s.Get("one"); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("the old name: %v", err)
	}
}

// A backup is a complete store, made while others write, and replaces no file.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir+"/state/clove.db")
	run, err := s.Begin(newRun("kept"))
	must(t, err)
	must(t, s.Backup(dir+"/copy"))
	_, err = s.Begin(newRun("later"))
	must(t, err)
	err = s.Backup(dir + "/copy")
	if agent.KindOf(err) != agent.KindConflict || agent.FailureOf(err).Hint == "" {
		t.Errorf("it replaces a file: %v", err)
	}
	if err := s.Backup(dir + "/no/copy"); err == nil || agent.FailureOf(err).Hint == "" {
		t.Errorf("%v", err)
	}
	must(t, s.Close())

	info, err := os.Stat(dir + "/copy")
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	kept := open(t, dir+"/copy")
	if got, err := kept.Get("kept"); err != nil || got.Spec.ID != run.Spec.ID {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := kept.Get("later"); agent.KindOf(err) != agent.KindNotFound {
		t.Errorf("what came later is in it: %v", err)
	}
	if problems, err := kept.Check(); err != nil || problems != nil {
		t.Errorf("%v, %v", problems, err)
	}
	must(t, kept.Close())
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		if name := entry.Name(); name != "state" && name != "copy" && name != "copy.lock" {
			t.Errorf("%s is left", name)
		}
	}
}

// A damaged store is not copied: the damage would not be noticed.
func TestBackupRefusesWhatIsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir+"/state/clove.db")
	run, err := s.Begin(newRun("one"))
	must(t, err)
	must(t, s.update(func(tb *tables) error { return tb.runs.Put([]byte(run.Spec.ID), []byte("{")) }))
	if err := s.Backup(dir + "/copy"); err == nil {
		t.Error("a damaged store is copied")
	}
	if _, err := os.Lstat(dir + "/copy"); err == nil {
		t.Error("there is a copy")
	}
	must(t, s.Close())
}
