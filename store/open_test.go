package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

func TestOpenMakesPrivateFiles(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	must(t, open(t, path).Close())
	for name, want := range map[string]os.FileMode{filepath.Dir(path): 0o700, path: 0o600, path + ".lock": 0o600} {
		info, err := os.Stat(name)
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %04o, want %04o", name, info.Mode().Perm(), want)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	if len(entries) != 2 {
		t.Errorf("%d files, want the store and its lock: %v", len(entries), entries)
	}
}

func TestReopenKeepsEverything(t *testing.T) {
	t.Parallel()
	path := tempFile(t)
	s := open(t, path)
	run, err := s.Begin(newRun("kept"))
	must(t, err)
	must(t, s.Close())
	wantStored(t, open(t, path), run)
}

func TestOpenRefusesADirectoryOfOthers(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o777, 0o775, 0o702} {
		dir := filepath.Join(t.TempDir(), "state")
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.Chmod(dir, mode))
		_, err := Open(filepath.Join(dir, "clove.db"), patience)
		wantKind(t, err, agent.KindInvalid)
		if entries, _ := os.ReadDir(dir); len(entries) != 0 {
			t.Errorf("mode %04o: left %v", mode, entries)
		}
		must(t, os.Chmod(dir, 0o755)) // the control: only the mode was wrong
		must(t, open(t, filepath.Join(dir, "clove.db")).Close())
	}
}

func TestOpenFollowsNoLink(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"clove.db", "clove.db.lock"} {
		dir := filepath.Join(t.TempDir(), "state")
		path := filepath.Join(dir, "clove.db")
		must(t, open(t, path).Close())
		must(t, os.Rename(filepath.Join(dir, name), filepath.Join(dir, "aside")))
		must(t, os.Symlink("aside", filepath.Join(dir, name)))
		if s, err := Open(path, patience); err == nil {
			s.Close()
			t.Errorf("%s: followed the link", name)
		}
	}
}

// A process that died while it made the file leaves a temporary one, complete or not. It must
// not prevent a new one, and must never be taken for the store.
func TestOpenAfterADeadCreator(t *testing.T) {
	t.Parallel()
	whole := tempFile(t)
	must(t, open(t, whole).Close())
	data, err := os.ReadFile(whole)
	must(t, err)
	for name, left := range map[string][]byte{"empty": {}, "garbage": []byte("garbage"), "half": data[:len(data)/2], "whole": data} {
		t.Run(name, func(t *testing.T) {
			path := tempFile(t)
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			must(t, os.WriteFile(path+".new", left, 0o600))
			_, err := open(t, path).Begin(newRun(""))
			must(t, err)
			if _, err := os.Lstat(path + ".new"); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the temporary file is still there (%v)", err)
			}
		})
	}
}

// writeBolt makes a bbolt file that is not clove's.
func writeBolt(t *testing.T, fill func(*bbolt.Tx) error) string {
	t.Helper()
	path := tempFile(t)
	must(t, os.Mkdir(filepath.Dir(path), 0o700))
	db, err := bbolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(fill))
	must(t, db.Close())
	return path
}

// withSteps is the store's format with other migrations.
func withSteps(steps []migration) format { return format{version: runsFormat.version, steps: steps} }

func TestOpenMigratesAnOlderFile(t *testing.T) {
	t.Parallel()
	path := writeBolt(t, func(*bbolt.Tx) error { return nil }) // schema 0: no bucket yet
	_, err := open(t, path).Begin(newRun(""))
	must(t, err)
}

// noEpilogue moves the file of a refused store away, so that the closing check does not find
// it.
func noEpilogue(t *testing.T, path string) {
	t.Cleanup(func() { os.Remove(path) })
}

func TestOpenRefusesOthersFiles(t *testing.T) {
	t.Parallel()
	bucket := func(name string) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte(name))
			return err
		}
	}
	cases := map[string]struct {
		fill func(*bbolt.Tx) error
		kind agent.Kind
		says string
	}{
		"newer schema":      {func(tx *bbolt.Tx) error { return runsFormat.setSchema(tx, 4) }, agent.KindInvalid, "has schema 4, this clove knows up to 3"},
		"another program's": {bucket("network"), agent.KindInvalid, "not clove"},
		"meta of another":   {bucket("meta"), agent.KindInvalid, "not clove"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := writeBolt(t, c.fill)
			noEpilogue(t, path)
			before, err := os.ReadFile(path)
			must(t, err)
			_, err = Open(path, patience)
			if known := wantKind(t, err, c.kind); !strings.Contains(known.Message, c.says) || known.Hint == "" {
				t.Errorf("%q (%s) does not say %q", known.Message, known.Hint, c.says)
			}
			if after, _ := os.ReadFile(path); !slices.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestMigrationsRunInOrderFromWhereTheFileStands(t *testing.T) {
	t.Parallel()
	for from, want := range map[int]string{0: "123", 1: "23", 2: "3", 3: ""} {
		var ran string
		note := func(digit string) func(*bbolt.Tx) error {
			return func(*bbolt.Tx) error { ran += digit; return nil }
		}
		steps := []migration{{1, "one", note("1")}, {2, "two", note("2")}, {3, "three", note("3")}}
		path := writeBolt(t, func(tx *bbolt.Tx) error {
			if from == 0 {
				return nil
			}
			return runsFormat.setSchema(tx, from)
		})
		noEpilogue(t, path)
		db, err := bbolt.Open(path, 0o600, nil)
		must(t, err)
		must(t, db.Update(func(tx *bbolt.Tx) error { return withSteps(steps).migrate(tx) }))
		must(t, db.View(func(tx *bbolt.Tx) error {
			if version, err := runsFormat.schemaOf(tx); version != 3 || err != nil {
				t.Errorf("from %d: ended at %d, %v", from, version, err)
			}
			return nil
		}))
		must(t, db.Close())
		if ran != want {
			t.Errorf("from %d: ran %q, want %q", from, ran, want)
		}
	}
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	t.Parallel()
	path := writeBolt(t, func(tx *bbolt.Tx) error { return runsFormat.migrate(tx) })
	s := open(t, path)
	steps := append(slices.Clone(migrations),
		migration{runsFormat.newest() + 1, "add a bucket", func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("half")); return err }},
		migration{runsFormat.newest() + 2, "fail", func(*bbolt.Tx) error { return errors.New("no") }})
	if err := s.upgrade(withSteps(steps)); err == nil || !strings.Contains(err.Error(), "cannot fail (schema 5)") {
		t.Errorf("got %v", err)
	} // the closing check would find the bucket or the schema
}

func TestMigrationsHaveNoGap(t *testing.T) {
	t.Parallel()
	for i, step := range migrations {
		if step.to != i+1 {
			t.Errorf("step %d leads to schema %d", i, step.to)
		}
	}
}
