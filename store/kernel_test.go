package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

func openKernel(t *testing.T, path string) *Kernel {
	t.Helper()
	k, err := OpenKernel(path, patience)
	must(t, err)
	t.Cleanup(func() { k.Close() }) // a second Close does nothing
	return k
}

// kernelFile returns a path for a kernel.db that does not exist yet.
func kernelFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "state", "kernel.db")
}

// It is a valid file of its own, for its owner alone, and it stays.
func TestKernelFile(t *testing.T) {
	t.Parallel()
	path := kernelFile(t)
	for range 2 { // made, then opened
		k := openKernel(t, path)
		if problems, err := k.Check(); err != nil || problems != nil {
			t.Errorf("%q, %v", problems, err)
		}
		must(t, k.view(func(tx *bbolt.Tx) error {
			if version := tx.Bucket(bucketMeta).Get([]byte("kernel")); string(version) != "3" {
				t.Errorf("its version is %q", version)
			}
			return nil
		}))
		must(t, k.Close())
	}
	for _, name := range []string{path, path + ".lock"} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 2 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A second process that opens it gets an error with the holder's name, however long the first
// one lives. If the holder is killed, the file is free.
func TestKernelHasOneHolder(t *testing.T) {
	t.Parallel()
	path := kernelFile(t)
	holder := startChild(t, "kernel", path)
	holder.line(t)
	for _, timeout := range []time.Duration{0, 50 * time.Millisecond} {
		_, err := OpenKernel(path, timeout)
		known := wantKind(t, err, agent.KindBusy)
		if process := fmt.Sprintf("process %d (%s", holder.Process.Pid, commandOf("self")); !strings.Contains(known.Message, process) || !strings.Contains(known.Hint, "cloved") {
			t.Errorf("%q (%s)", known.Message, known.Hint)
		}
	}
	must(t, holder.Process.Kill())
	must(t, openKernel(t, path).Close())
}

// Neither of the two files is accepted as the other, and a newer version is refused; each file
// stays unchanged.
func TestKernelRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	runs := tempFile(t)
	must(t, open(t, runs).Close())
	kernel := kernelFile(t)
	must(t, openKernel(t, kernel).Close())
	newer := writeBolt(t, func(tx *bbolt.Tx) error { return kernelFormat.setSchema(tx, 4) })
	noEpilogue(t, newer)
	for name, c := range map[string]struct {
		path, says string
		open       func(string) error
	}{
		"clove.db":  {runs, "not clove", func(path string) error { _, err := OpenKernel(path, patience); return err }},
		"kernel.db": {kernel, "not clove", func(path string) error { _, err := Open(path, patience); return err }},
		"newer":     {newer, "has schema 4, this clove knows up to 3", func(path string) error { _, err := OpenKernel(path, patience); return err }},
	} {
		before, err := os.ReadFile(c.path)
		must(t, err)
		known := wantKind(t, c.open(c.path), agent.KindInvalid)
		if !strings.Contains(known.Message, c.says) {
			t.Errorf("%s: %q", name, known.Message)
		}
		if after, err := os.ReadFile(c.path); err != nil || !slices.Equal(before, after) {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
}

// Check reports what does not belong in the file, and Backup copies an intact file only.
func TestKernelBackup(t *testing.T) {
	t.Parallel()
	path := kernelFile(t)
	k := openKernel(t, path)
	to := filepath.Join(t.TempDir(), "copy")
	must(t, k.Backup(to))
	if err := k.Backup(to); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("it replaces a file: %v", err)
	}
	copied := openKernel(t, to)
	if problems, err := copied.Check(); err != nil || problems != nil {
		t.Errorf("the copy: %q, %v", problems, err)
	}
	must(t, k.db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("stray")); return err }))
	if problems, err := k.Check(); err != nil || len(problems) != 1 || !strings.Contains(problems[0], `"stray"`) {
		t.Errorf("%q, %v", problems, err)
	}
	if err := k.Backup(to + ".2"); err == nil {
		t.Error("what is not sound is copied")
	}
}
