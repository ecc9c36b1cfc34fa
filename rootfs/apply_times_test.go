package rootfs

import (
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// dated sets both times of an entry, a link's own.
func dated(t *testing.T, dir, name string, access, modified time.Time) {
	t.Helper()
	times := make([]unix.Timespec, 2)
	for i, at := range []time.Time{access, modified} {
		var err error
		if times[i], err = unix.TimeToTimespec(at); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, name), times, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t.Fatal(err)
	}
}

func modifiedAt(t *testing.T, dir, name string) time.Time {
	t.Helper()
	st := statOf(t, dir, name)
	return time.Unix(st.Mtim.Unix())
}

// Each entry has the agent's times to the nanosecond. They fall with the names, so the moments of
// the copies, which rise with them, are never right by chance. A file of the size that the host's has
// would be read for the comparison.
func TestApplyKeepsTimes(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, []string{"d old", "f old/b 1", "f old/kept 1"},
		[]string{"d old", "f old/a 2", "f old/b 22", "w old/kept", "d sub", "d sub/deep", "f sub/deep/x 1", "f sub/y 1", "l z sub/y"})
	names := []string{"old", "old/a", "old/b", "sub", "sub/deep", "sub/deep/x", "sub/y", "z"}
	past := time.Now().Add(-time.Hour).Truncate(time.Second)
	at := func(i int) time.Time { return past.Add(-time.Duration(i)*time.Minute + 123456789) }
	for i := len(names) - 1; i >= 0; i-- {
		dated(t, w.upper.Dir, names[i], at(i).Add(-time.Second), at(i))
	}
	w.apply(t, "")
	for i, name := range names {
		st := statOf(t, w.host, name)
		accessed, modified := time.Unix(st.Atim.Unix()), time.Unix(st.Mtim.Unix())
		if !modified.Equal(at(i)) || fileType(st.Mode) == TypeFile && !accessed.Equal(at(i).Add(-time.Second)) {
			t.Errorf("%s: read %s, changed %s, want %s", name, accessed, modified, at(i))
		}
	}
}

// A time in the future becomes the present, and a directory that the host changed last keeps the
// time of that.
func TestApplyBoundsTimes(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, []string{"d d", "d e"}, []string{"d d", "f d/x 1", "d e", "f e/x 1", "f ahead 1"})
	now := time.Now()
	w.upper.Since = now.Add(-time.Hour)
	agents, hosts := now.Add(-2*time.Minute), now.Add(-time.Minute)
	for _, name := range []string{"d", "e"} {
		dated(t, w.upper.Dir, name, agents, agents)
	}
	dated(t, w.host, "d", hosts, hosts)
	before := now.Add(-2 * time.Hour)
	dated(t, w.host, "e", before, before)
	dated(t, w.upper.Dir, "ahead", now.Add(time.Hour), now.Add(time.Hour))
	w.apply(t, "")
	if got := modifiedAt(t, w.host, "d"); !got.Equal(hosts) {
		t.Errorf("the host changed d at %s, and it has %s", hosts, got)
	}
	if got := modifiedAt(t, w.host, "e"); !got.Equal(agents) {
		t.Errorf("control: the agent changed e at %s, and it has %s", agents, got)
	}
	if got := modifiedAt(t, w.host, "ahead"); got.Before(now) || got.After(time.Now()) {
		t.Errorf("a time ahead became %s", got)
	}
}
