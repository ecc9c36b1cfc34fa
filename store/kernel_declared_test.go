package store

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// A file that was made without a table opens with it, and one that has its rows without it:
// they stay, also in a backup, and nothing is reported of them.
func TestATableComesAndGoes(t *testing.T) {
	t.Parallel()
	path := kernelFile(t)
	k := openNotes(t, path)
	inTx(t, k, count("7"))
	must(t, k.Close())

	k = openNotes(t, path, notes)
	wantSound(t, k)
	inTx(t, k, func(tx *KernelTx) error { return putNotes(tx, aRun, "1:x", "2") })
	must(t, k.Close())
	if _, err := os.Stat(path + ".schema3"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a table is a migration: %v", err)
	}

	k = openNotes(t, path)
	wantSound(t, k)
	inTx(t, k, count("7"))
	copied := path + ".copy"
	must(t, k.Backup(copied))
	must(t, k.Close())

	for _, path := range []string{path, copied} {
		k = openNotes(t, path, notes)
		wantSound(t, k)
		must(t, k.Read(func(tx *KernelTx) error {
			wantNotes(t, "all", "a1 a2")(notes.Below(tx, ""))
			wantNotes(t, "of x", "a1")(notes.Indexed(tx, "note-topics", "x"))
			return nil
		}))
		wantUsed(t, k, "7", 2)
		must(t, k.Close())
	}
}

// An index and a sum that a table gets later have the rows that are there. A row that cannot be read does
// not keep the file shut.
func TestAnIndexOfOldRows(t *testing.T) {
	t.Parallel()
	path := kernelFile(t)
	unindexed := notes
	unindexed.Indexes, unindexed.Sums = nil, nil
	k := openNotes(t, path, unindexed)
	inTx(t, k, func(tx *KernelTx) error {
		return firstOf(unindexed.Put(tx, &note{Run: aRun, ID: "1", Topics: []string{"x", "y"}, Text: "t"}), rawNote("notes", "broken", "{")(tx))
	})
	must(t, k.Close())
	k = openNotes(t, path, notes)
	inTx(t, k, func(tx *KernelTx) error {
		wantNotes(t, "of x", "a1")(notes.Indexed(tx, "note-topics", "x"))
		if sums, err := notes.Summed(tx, "note-sums"); err != nil || fmt.Sprint(sums) != "map[t:[1 2 0]]" {
			t.Error(sums, err)
		}
		return tx.delete([]byte("notes"), []byte("broken"))
	})
	wantSound(t, k)
}

// A bucket that was made once and is gone is damage, as that of a built-in table is.
func TestATableWithoutItsBucket(t *testing.T) {
	t.Parallel()
	path := kernelFile(t)
	k := openNotes(t, path, notes)
	must(t, k.db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("notes")) }))
	must(t, k.Close())
	k = openNotes(t, path, notes)
	_, err := k.Check()
	wantKind(t, err, agent.KindInternal)
	wantKind(t, k.Update(func(tx *KernelTx) error { return putNotes(tx, aRun, "1") }), agent.KindInternal)
}

// A table that OpenKernel does not get is an error that names it, and so are two of one bucket.
func TestTablesAreDeclaredOnce(t *testing.T) {
	t.Parallel()
	path := kernelFile(t)
	k := openNotes(t, path)
	err := k.Read(func(tx *KernelTx) error { _, err := notes.Get(tx, "x"); return err })
	if err == nil || !strings.Contains(err.Error(), "no bucket notes") {
		t.Errorf("%v", err)
	}
	must(t, k.Close())
	for _, tables := range [][]Declared{{notes, notes}, {Table[note]{Bucket: "grants"}}, {Table[note]{Bucket: "meta"}}} {
		if _, err := OpenKernel(path, time.Second, tables...); err == nil || !strings.Contains(err.Error(), "two tables declare") {
			t.Errorf("%v", err)
		}
	}
	wantSound(t, openNotes(t, path))
}

// The drawing in kernel_schema.go has the buckets that are declared, in their order.
func TestTheDrawingIsDeclared(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("kernel_schema.go")
	must(t, err)
	var drawn []string
	for _, line := range regexp.MustCompile(`(?m)^//\t([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
		drawn = append(drawn, line[1])
	}
	declared := []string{"meta"}
	for _, name := range bucketsOf(kernelTables) {
		declared = append(declared, string(name))
	}
	if !slices.Equal(drawn, declared) {
		t.Errorf("it draws %q, declared are %q", drawn, declared)
	}
}
