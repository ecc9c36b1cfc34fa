//go:build root

package audit

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// On a full disk Append refuses when only the reserve is left, the ends of runs are still
// recorded, and the log goes on when there is space again.
func TestFullDisk(t *testing.T) {
	testhost.Root(t)
	disk := t.TempDir()
	must(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,size=4m"))
	t.Cleanup(func() { must(t, unix.Unmount(disk, 0)) })
	dir := filepath.Join(disk, "audit")
	keys, err := OpenKeys(filepath.Join(disk, "keys"))
	must(t, err)
	l, err := Open(dir, Options{Keys: keys, CheckpointRecords: 50, SegmentBytes: 512 << 10, ReserveBytes: 128 << 10})
	must(t, err)
	with(t, l, decision("control: there is room"))
	filler := filepath.Join(disk, "filler")
	file, err := os.Create(filler)
	must(t, err)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	must(t, file.Close())
	written, large := 1, strings.Repeat("x", whatMax)
	for {
		if _, err = l.Append(decision(large)); err != nil {
			break
		}
		if written++; written > 10000 {
			t.Fatal("the disk is not full")
		}
	}
	if !errors.Is(err, ErrStorage) || !errors.Is(err, unix.ENOSPC) || written < 100 {
		t.Errorf("after %d records: %v", written, err)
	}
	for range 100 { // of the reserve of 128 KiB
		if _, err := l.AppendEnd(Entry{Kind: KindEnd, What: large}); err != nil {
			t.Fatalf("an end: %v", err)
		}
		written++
	}
	if saved, err := savedCheckpoints(filepath.Join(dir, checkpointsName)); err != nil || len(saved) == 0 || saved[len(saved)-1].Size+50 < uint64(written) {
		t.Errorf("of %d records the newest of %d checkpoints does not cover the ends: %v", written, len(saved), err)
	}
	must(t, l.Enqueue(decision("kept in memory")))
	if _, err = l.Append(decision("")); !errors.Is(err, ErrStorage) {
		t.Errorf("after the ends: %v", err)
	}
	must(t, os.Remove(filler))
	with(t, l, decision("room again"))
	must(t, l.Close())
	sound(t, dir, written+2)
}

// A log is opened on a disk without space for a segment. Append is refused, the ends of runs
// are recorded in what space there is, and Append works when there is more.
func TestFullDiskFromTheStart(t *testing.T) {
	testhost.Root(t)
	disk := t.TempDir()
	must(t, unix.Mount("tmpfs", disk, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=700,size=2m"))
	t.Cleanup(func() { must(t, unix.Unmount(disk, 0)) })
	dir := filepath.Join(disk, "audit")
	options := Options{SegmentBytes: 4 << 20, ReserveBytes: 1 << 20}
	l, err := Open(dir, options)
	must(t, err)
	refused := func() {
		t.Helper()
		if _, err := l.Append(decision("")); !errors.Is(err, ErrStorage) || !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a decision: %v", err)
		}
		if err := l.Room(); !errors.Is(err, ErrStorage) {
			t.Errorf("it says that there is room: %v", err)
		}
	}
	refused()
	// What is left of the disk is used up: only what the log holds is there for ends.
	fill(t, filepath.Join(disk, "filler"))
	const ends = 200
	for range ends {
		if _, err := l.AppendEnd(Entry{Kind: KindEnd, What: strings.Repeat("x", whatMax)}); err != nil {
			t.Fatalf("an end: %v", err)
		}
	}
	refused()
	must(t, l.Enqueue(decision("kept in memory")))
	if err := l.Close(); !errors.Is(err, ErrStorage) {
		t.Errorf("it closes without the entry that waits: %v", err)
	}
	l, err = Open(dir, options) // again on the full disk, with a gap to record
	must(t, err)
	refused()
	must(t, os.Remove(filepath.Join(disk, "filler")), unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, "size=32m"))
	with(t, l, decision("room"))
	must(t, l.Close())
	sound(t, dir, ends+2)
	if gap := all(t, dir)[ends]; gap.Kind != KindGap || gap.Code != gapKilled || gap.Count != 1 {
		t.Errorf("%+v", gap)
	}
}

// fill uses up a disk.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	must(t, err)
	defer file.Close()
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}
