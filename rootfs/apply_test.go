package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// workspace is a host directory and the layer above it.
type workspace struct {
	host  string
	upper Upper
}

// newWorkspace makes both sides. The layer begins after the host's files.
func newWorkspace(t testing.TB, host, layer []string) workspace {
	t.Helper()
	w := workspace{host: t.TempDir()}
	plant(t, w.host, host...)
	w.upper = Upper{Dir: t.TempDir(), Lower: w.host, Prefix: "/w", Since: time.Now().Add(time.Hour)}
	plant(t, w.upper.Dir, layer...)
	return w
}

// apply applies what Diff finds; the names of opaque directories are arguments.
func (w workspace) apply(t testing.TB, opaque string) []string {
	t.Helper()
	room := maxListBytes
	changes, err := diffUpper(t.Context(), w.upper, opaqueAt(opaque), &room, Access{})
	if err != nil {
		t.Fatal(err)
	}
	done, err := Apply(t.Context(), w.upper, w.host, changes, Access{})
	if err != nil {
		t.Fatal(err)
	}
	return lines(done)
}

// applyOne makes one change alone.
func applyOne(t *testing.T, a *applier, c Change) (made bool, err error) {
	t.Helper()
	g := a.plan([]Change{c})
	return a.apply(t.Context(), g, &g.steps[0])
}

// listing describes everything below dir, one line for each entry: type, permissions, path,
// content.
func listing(t testing.TB, dir string) []string {
	t.Helper()
	var text []string
	err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, at)
		content := ""
		switch fileType(st.Mode) {
		case TypeFile:
			data, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			content = string(data)
		case TypeSymlink:
			content, err = os.Readlink(at)
		}
		text = append(text, fmt.Sprintf("%s %o %s %s", fileType(st.Mode), st.Mode&permissions, rel, content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestApply(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                           string
		host, layer, wantDone, wantNow []string
		opaque                         string
	}{
		{"nothing", []string{"f x 1"}, nil, nil, []string{"file 644 x 1"}, ""},
		{"add", nil, []string{"d d", "m d 750", "f d/x 1", "m d/x 755", "l l d/x"},
			[]string{"A /w/d", "A /w/d/x", "A /w/l -> d/x"},
			[]string{"dir 750 d ", "file 755 d/x 1", "symlink 777 l d/x"}, ""},
		{"change", []string{"f x 1", "l l x", "d d", "m d 2755"}, []string{"f x 2", "l l y", "d d", "m d 2700"},
			[]string{"C /w/d", "C /w/l -> y", "C /w/x"}, []string{"dir 2700 d ", "symlink 777 l y", "file 644 x 2"}, ""},
		{"delete", []string{"f x 1", "d d", "d d/e", "f d/e/y 1", "l d/l /etc"}, []string{"w x", "w d"},
			[]string{"D /w/d", "D /w/x"}, nil, ""},
		{"opaque", []string{"d d", "f d/x 1", "d d/e", "f d/e/y 1"}, []string{"d d", "f d/z 1"},
			[]string{"A /w/d/z", "D /w/d/e", "D /w/d/x"}, []string{"dir 755 d ", "file 644 d/z 1"}, "d"},
		{"dir to link", []string{"d d", "f d/x 1", "d e"}, []string{"l d e"},
			[]string{"C /w/d -> e (was a dir)"}, []string{"symlink 777 d e", "dir 755 e "}, ""},
		{"file to dir", []string{"f d 1"}, []string{"d d", "f d/x 2"},
			[]string{"A /w/d/x", "C /w/d (was a file)"}, []string{"dir 755 d ", "file 644 d/x 2"}, ""},
		{"link to dir", []string{"l d /etc"}, []string{"d d", "f d/hostname 2"},
			[]string{"A /w/d/hostname", "C /w/d (was a symlink)"}, []string{"dir 755 d ", "file 644 d/hostname 2"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorkspace(t, tt.host, tt.layer)
			if got := w.apply(t, tt.opaque); !slices.Equal(got, tt.wantDone) {
				t.Errorf("done %q, want %q", got, tt.wantDone)
			}
			if got := listing(t, w.host); !slices.Equal(got, tt.wantNow) {
				t.Errorf("the host has %q, want %q", got, tt.wantNow)
			}
			if got := w.apply(t, tt.opaque); got != nil {
				t.Errorf("the second time: %q", got)
			}
		})
	}
}

// Each hostile entry is refused. The control: a harmless entry that differs in that point only
// is applied.
func TestApplyRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, hostile, harmless, reason string }{
		{"absolute link", "l bad /etc/passwd", "l good etc/passwd", "may lead out"},
		{"link out", "l bad ../x", "l good x", "may lead out"},
		{"link out by a detour", "l bad d/../../x", "l good d/x", "may lead out"},
		{"link up after a name", "l bad d/../x", "l good ./x", "may lead out"},
		{"deeper link out", "l d/bad ../../x", "l d/good ../x", "may lead out"},
		{"fifo", "p bad", "f good 1", "a fifo"},
		{"socket", "s bad", "f good 1", "a socket"},
		{"our own name", "f " + stagedName + " 1", "f good 1", "clove's own"},
		{"our own name above", "d " + stagedName, "d good", "clove's own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorkspace(t, []string{"d d"}, []string{"d d", tt.hostile, tt.harmless})
			got := w.apply(t, "")
			refused := slices.DeleteFunc(slices.Clone(got), func(line string) bool { return !strings.Contains(line, "refused") })
			if len(got) != 2 || len(refused) != 1 || strings.Contains(refused[0], "good") || !strings.Contains(refused[0], tt.reason) {
				t.Fatalf("got %q", got)
			}
			now := listing(t, w.host)
			if len(now) != 2 || !strings.Contains(strings.Join(now, "\n"), "good") {
				t.Errorf("the host has %q", now)
			}
		})
	}
}

// The agent replaced a directory of the host by a link, or the host has a link where the layer
// has a directory: neither leads Apply out of the workspace.
func TestApplyDoesNotFollowLinks(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	plant(t, outside, "f secret 1", "f victim 1", "d d")
	before := listing(t, outside)

	t.Run("control", func(t *testing.T) {
		w := newWorkspace(t, nil, []string{"l d " + outside})
		if data, err := os.ReadFile(filepath.Join(w.upper.Dir, "d/secret")); err != nil || string(data) != "1" {
			t.Errorf("the link leads nowhere even for those who follow it: %v", err)
		}
	})
	t.Run("in the layer", func(t *testing.T) {
		w := newWorkspace(t, []string{"d d"}, []string{"l d " + outside})
		done, err := Apply(t.Context(), w.upper, w.host, []Change{
			{Kind: Added, Path: "/w/d/secret", Type: TypeFile}, {Kind: Changed, Path: "/w/d", Type: TypeSymlink}}, Access{})
		if err != nil || len(done) != 2 || done[0].Refused == "" || done[1].Refused == "" {
			t.Errorf("got %+v, %v", done, err)
		}
		if now := listing(t, w.host); !slices.Equal(now, []string{"dir 755 d "}) {
			t.Errorf("the host has %q", now)
		}
	})
	t.Run("on the host", func(t *testing.T) {
		w := newWorkspace(t, []string{"l d " + outside}, []string{"d d", "f d/victim 2", "f d/new 2"})
		done, err := Apply(t.Context(), w.upper, w.host, []Change{
			{Kind: Changed, Path: "/w/d/victim", Type: TypeFile}, {Kind: Added, Path: "/w/d/new", Type: TypeFile},
			{Kind: Deleted, Path: "/w/d/secret"}, {Kind: Deleted, Path: "/w/d/d"}}, Access{})
		if err != nil || slices.ContainsFunc(done, func(c Change) bool { return c.Refused == "" }) || len(done) != 4 {
			t.Errorf("got %q, %v", lines(done), err)
		}
	})
	t.Run("inside the workspace", func(t *testing.T) {
		w := newWorkspace(t, []string{"d d", "d d/e", "l l d"}, []string{"d l", "d l/e", "f l/e/x 1", "f l/x 1"})
		done, err := Apply(t.Context(), w.upper, w.host, []Change{
			{Kind: Added, Path: "/w/l/e/x", Type: TypeFile}, {Kind: Added, Path: "/w/l/x", Type: TypeFile}, {Kind: Deleted, Path: "/w/l/e"}}, Access{})
		if err != nil || slices.ContainsFunc(done, func(c Change) bool { return c.Refused == "" }) || len(done) != 3 {
			t.Errorf("got %q, %v", lines(done), err)
		}
	})
	t.Run("deleted with the link", func(t *testing.T) {
		w := newWorkspace(t, []string{"d d", "l d/l " + outside}, []string{"w d"})
		if got := w.apply(t, ""); !slices.Equal(got, []string{"D /w/d"}) {
			t.Errorf("got %q", got)
		}
	})
	if now := listing(t, outside); !slices.Equal(now, before) {
		t.Errorf("outside is now %q, was %q", now, before)
	}
}

func TestApplyRefusesPaths(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, []string{"f x 1"})
	for _, at := range []string{"/w", "/w/", "/w/.", "/w/..", "/w/../x", "/w/d/../x", "/w//x", "/w/x/", "/x", "w/x", "", "/w/x\x00", "/wx"} {
		done, err := Apply(t.Context(), w.upper, w.host, []Change{{Kind: Added, Path: at, Type: TypeFile}}, Access{})
		if err != nil || len(done) != 1 || done[0].Refused == "" {
			t.Errorf("%q: %+v, %v", at, done, err)
		}
	}
	done, err := Apply(t.Context(), w.upper, w.host, []Change{{Kind: Added, Path: "/w/x", Type: TypeFile}}, Access{})
	if err != nil || len(done) != 1 || done[0].Refused != "" {
		t.Errorf("control: %+v, %v", done, err)
	}
}

// Files that the host changed since the layer began are kept. Each case runs with a layer that
// began before the host's change (a conflict) and with one that began after it (the control).
func TestApplyKeepsWhatTheHostChanged(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, host, layer, touched string }{
		{"changed", "f x 1", "f x 2", "x"},
		{"deleted", "f x 1", "w x", "x"},
		{"link", "l x y", "l x z", "x"},
		{"deleted above it", "f d/x 1", "w d", "d/x"},
		{"replaced above it", "f d/x 1", "f d 1", "d/x"},
	}
	for _, tt := range tests {
		for _, conflict := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", tt.name, conflict), func(t *testing.T) {
				host := []string{tt.host}
				if strings.Contains(tt.touched, "/") {
					host = []string{"d d", tt.host}
				}
				w := newWorkspace(t, host, []string{tt.layer})
				// The host set the file's modification time to the past, as tar does.
				at := filepath.Join(w.host, tt.touched)
				if err := unix.UtimesNanoAt(unix.AT_FDCWD, at, make([]unix.Timespec, 2), unix.AT_SYMLINK_NOFOLLOW); err != nil {
					t.Fatal(err)
				}
				st := statOf(t, w.host, tt.touched)
				w.upper.Since = time.Unix(st.Ctim.Unix())
				if !conflict {
					w.upper.Since = w.upper.Since.Add(1)
				}
				before := listing(t, w.host)
				got := w.apply(t, "")
				kept := slices.Equal(listing(t, w.host), before)
				if len(got) != 1 || strings.Contains(got[0], "refused") != conflict || kept != conflict {
					t.Errorf("got %q, kept: %v", got, kept)
				}
			})
		}
	}
}

// If the host replaces one hard link of a file, the change time of the others moves, although
// the host did not change their content. New content is a change, under any name.
func TestApplyKnowsItsOwnUnlinking(t *testing.T) {
	t.Parallel()
	for _, conflict := range []bool{false, true} {
		w := newWorkspace(t, []string{"f a 1", "h b a", "d d", "h d/c a"}, []string{"f a 2", "f b 2", "w d"})
		st := statOf(t, w.host, "a")
		w.upper.Since = time.Unix(st.Ctim.Unix()).Add(1)
		a, err := openApplier(w.upper, w.host, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer a.close()
		if made, err := applyOne(t, a, Change{Kind: Changed, Path: "/w/a", Type: TypeFile}); !made || err != nil {
			t.Fatalf("the first name: %v, %v", made, err)
		}
		if conflict {
			plant(t, w.host, "f b host")
			if err := os.Chtimes(filepath.Join(w.host, "b"), time.Time{}, w.upper.Since); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []Change{{Kind: Changed, Path: "/w/b", Type: TypeFile}, {Kind: Deleted, Path: "/w/d"}} {
			if made, err := applyOne(t, a, c); made == conflict || (err != nil) != conflict {
				t.Errorf("conflict: %v, %s: %v, %v", conflict, c, made, err)
			}
		}
	}
}

func TestApplyKeepsWhatTheHostAdded(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, []string{"f x 1", "d d", "f same 1"})
	changes, err := Diff(t.Context(), []Upper{w.upper}, Access{})
	if err != nil {
		t.Fatal(err)
	}
	plant(t, w.host, "f x host", "f d host", "f same 1")
	done, err := Apply(t.Context(), w.upper, w.host, changes, Access{})
	if err != nil || len(done) != 2 || done[0].Refused == "" || done[1].Refused == "" {
		t.Errorf("got %+v, %v", done, err)
	}
	if now := listing(t, w.host); !slices.Equal(now, []string{"file 644 d host", "file 644 same 1", "file 644 x host"}) {
		t.Errorf("the host has %q", now)
	}
}

// If the layer's beginning is not known, Apply may add files, and replaces none.
func TestApplyWithoutABeginReplacesNothing(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, []string{"f x 1"}, []string{"f x 2", "f y 2"})
	w.upper.Since = time.Time{}
	got := w.apply(t, "")
	if len(got) != 2 || got[0] != "A /w/y" || !strings.Contains(got[1], "refused") {
		t.Errorf("got %q", got)
	}
}

func TestApplyGoesOnWhereItWasKilled(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, []string{"d d", "f d/x 1"}, []string{"d d", "f d/x 2"})
	plant(t, w.host, "d d/"+stagedName, "f d/"+stagedName+"/half 1")
	if got := w.apply(t, ""); !slices.Equal(got, []string{"C /w/d/x"}) {
		t.Errorf("got %q", got)
	}
	if now := listing(t, w.host); !slices.Equal(now, []string{"dir 755 d ", "file 644 d/x 2"}) {
		t.Errorf("the host has %q", now)
	}
}

func TestApplyFails(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, nil, []string{"f x 1"})
	changes := []Change{{Kind: Added, Path: "/w/x", Type: TypeFile}}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := Apply(ended, w.upper, w.host, changes, Access{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(w.host, alias); err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), w.upper, alias, changes, Access{}); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link as target: %v", err)
	}
	if _, err := Apply(t.Context(), Upper{Dir: filepath.Join(w.host, "none")}, w.host, changes, Access{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no layer: %v", err)
	}
	other, err := openApplier(w.upper, w.host, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), w.upper, w.host, changes, Access{}); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("two at a time: %v", err)
	}
	other.close()
	if now := listing(t, w.host); now != nil {
		t.Errorf("the host has %q", now)
	}
	if done, err := Apply(t.Context(), w.upper, w.host, changes, Access{}); err != nil || len(done) != 1 {
		t.Errorf("control: %q, %v", lines(done), err)
	}
}

// countdown is a context that ends at its n-th check.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// Wherever Apply is interrupted, each entry is in its old or its new state, nothing else is
// there, and the next Apply does the rest.
func TestApplyEndedAnywhere(t *testing.T) {
	t.Parallel()
	host := []string{"f a old", "f big old", "d d", "d d/e", "f d/e/x old", "d t", "f t/x old", "f z old"}
	layer := []string{"f a new", "f big " + strings.Repeat("new", 3<<20), "w d", "l t a", "f new new", "d z", "f z/x new"}
	whole := newWorkspace(t, host, layer)
	before := listing(t, whole.host)
	whole.apply(t, "")
	after := listing(t, whole.host)
	allowed := append(slices.Clone(before), after...)

	step := 1
	if testing.Short() {
		step = 4
	}
	for looks := 0; ; looks += step {
		w := newWorkspace(t, host, layer)
		changes, err := Diff(t.Context(), []Upper{w.upper}, Access{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Apply(&countdown{t.Context(), looks}, w.upper, w.host, changes, Access{})
		now := listing(t, w.host)
		for _, line := range now {
			if !slices.Contains(allowed, line) {
				t.Errorf("ended at look %d: %.80q is neither old nor new", looks, line)
			}
		}
		w.apply(t, "")
		if got := listing(t, w.host); !slices.Equal(got, after) {
			t.Errorf("ended at look %d: the second Apply makes %.500q", looks, got)
		}
		if err == nil {
			if looks < len(changes) || !slices.Equal(now, after) {
				t.Errorf("control: not ended with %d looks, and the host has %.500q", looks, now)
			}
			return
		}
	}
}
