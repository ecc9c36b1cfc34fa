package observe

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The check of owners and modes is the kernel's; the table has what each class may.
func TestMay(t *testing.T) {
	t.Parallel()
	me := caller{thread: uint32(os.Getpid()), uids: [4]uint32{0, 0, 0, 7}, gids: [4]uint32{0, 0, 0, 5}, groups: []uint32{6}}
	root := me
	root.held = 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER
	const file, dir = unix.S_IFREG, unix.S_IFDIR
	for _, row := range []struct {
		name     string
		who      caller
		uid, gid uint32
		mode     uint32
		bits     uint32
		may      bool
	}{
		{"the owner writes", me, 7, 0, file | 0o200, toWrite, true},
		{"the owner is bound by its own bits", me, 7, 5, file | 0o077, toWrite, false},
		{"a group", me, 0, 5, file | 0o020, toWrite, true},
		{"another of its groups", me, 0, 6, file | 0o020, toWrite, true},
		{"a group is bound by its own bits", me, 0, 6, file | 0o602, toWrite, false},
		{"everybody", me, 0, 0, file | 0o002, toWrite, true},
		{"the base system", me, 0, 0, file | 0o644, toWrite, false},
		{"half of what is wanted", me, 0, 0, file | 0o002, toRead | toWrite, false},
		{"a directory that cannot be searched", me, 7, 0, dir | 0o600, toWrite | toSearch, false},
		{"root", root, 0, 0, file | 0o444, toWrite, true},
		{"root in a directory", root, 0, 0, dir, toWrite | toSearch, true},
		{"root executes what is no program", root, 0, 0, file | 0o644, toSearch, false},
		{"root executes another's program", root, 0, 0, file | 0o100, toSearch, true},
	} {
		if got := row.who.may(unix.Stat_t{Uid: row.uid, Gid: row.gid, Mode: row.mode}, row.bits); got != row.may {
			t.Errorf("%s: %t", row.name, got)
		}
	}
	if gone := (caller{held: root.held}); gone.may(unix.Stat_t{Uid: 9, Mode: file | 0o400}, toWrite) {
		t.Error("a capability counts for ids that no map has")
	}
}

// The mount does not cause refusals by what exists, and by owners and modes. That the
// kernel sees it alike is TestRefusedFilesAreSeen's.
func TestWantsAndPermits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	parent, entry := open(t, dir), open(t, filepath.Join(dir, "there"))
	missing, there := resolved{entry: -1, parent: parent, name: "new"}, resolved{entry: entry, parent: parent, name: "there"}
	for _, row := range []struct {
		name   string
		s      resolved
		c      change
		flags  uint64
		second bool
		wants  bool
	}{
		{"an open that makes", missing, toOpen, unix.O_CREAT | unix.O_WRONLY, false, true},
		{"an open of what is missing", missing, toOpen, unix.O_WRONLY, false, false},
		{"an open for reading", there, toOpen, unix.O_RDONLY, false, false},
		{"an open that makes what exists", there, toOpen, unix.O_CREAT, false, false},
		{"an exclusive open of what exists", there, toOpen, unix.O_CREAT | unix.O_EXCL | unix.O_RDWR, false, false},
		{"an open that empties", there, toOpen, unix.O_TRUNC, false, true},
		{"mkdir", missing, toMake, 0, false, true}, {"mkdir of what exists", there, toMake, 0, false, false},
		{"unlink", there, toRemove, 0, false, true}, {"unlink of nothing", missing, toRemove, 0, false, false}, {"the new name", missing, toRemove, 0, true, true},
		{"chmod", there, toAlter, 0, false, true}, {"chmod of nothing", missing, toAlter, 0, false, false},
	} {
		if got := row.s.wants(row.c, row.flags, row.second); got != row.wants {
			t.Errorf("%s: %t", row.name, got)
		}
		if row.wants && !row.s.permits(row.c, row.flags, uint32(os.Getpid())) {
			t.Errorf("%s: its owner may not", row.name)
		}
	}
	if there.permits(toOpen, unix.O_WRONLY, 0) {
		t.Error("a thread that does not exist may")
	}
}

// In a directory such as /tmp, others' entries stay.
func TestStuck(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Chmod(dir, unix.S_ISVTX|0o777); err != nil {
		t.Fatal(err)
	}
	mine, other := uint32(os.Geteuid()), uint32(os.Geteuid())+1
	fd := open(t, dir)
	for _, row := range []struct {
		who, entry uint32
		stuck      bool
	}{{mine, other, false}, {other, other, false}, {other, mine, true}} {
		if got := (caller{uids: [4]uint32{3: row.who}}).stuck(fd, unix.Stat_t{Uid: row.entry}); got != row.stuck {
			t.Errorf("%d removes what is %d's: %t", row.who, row.entry, got)
		}
	}
}

func open(t *testing.T, name string) int {
	t.Helper()
	fd, err := unix.Open(name, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}
