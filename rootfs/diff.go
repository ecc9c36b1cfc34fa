package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Diff lists what the agent changed, sorted by path. It compares each upper directory with
// the present state of the host directory below it.
//
// It compares content, type, permission bits and link targets. It ignores owners (the id
// map shifts them), times and extended attributes. A directory is listed if it is new or if
// its own permission bits changed, not because of its entries. The top of an upper
// directory is never listed, because it belongs to the mount, not to the agent.
func Diff(ctx context.Context, uppers []Upper, access Access) ([]Change, error) {
	var changes []Change
	room := cmp.Or(access.ListBytes, maxListBytes)
	for _, upper := range uppers {
		found, err := diffUpper(ctx, upper, overlayMark, &room, access)
		if err != nil {
			return nil, fmt.Errorf("cannot compare %s: %w", printable(upper.Prefix), err)
		}
		changes = append(changes, found...)
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return changes, nil
}

// Access says with whose rights files are read and written, and bounds the list. The zero
// value means the caller's rights.
type Access struct {
	// Layer reads the layer, which needs root's rights. nil: the caller's.
	Layer Rights
	// Host has, by the prefix of an upper, the rights for the host directory below it. A
	// user must not learn from a diff what the user cannot read. nil: the caller's. What
	// may not be read counts as absent.
	Host map[string]Rights
	// ListBytes bounds the list of changes; 0: maxListBytes.
	ListBytes int
	// Contents are paths inside: what changed there and below is read, too.
	Contents []string
	// Sums are the prefixes of uppers in which all changed files are read for their Change.Sum.
	Sums []string
}

// marks reads overlayfs attributes; unit tests have no privilege for them and replace it.
type marks func(dir *os.File, name, mark string) (value string, ok bool, err error)

// differ walks one upper directory. overlayfs leaves in it: a copy of each file that was
// changed; a whiteout for each name that was deleted; the attribute "opaque" on a directory
// that replaces one of the lower layer; "redirect" on one that was renamed (redirect.go); and copies of directories ("origin") that only lead
// to such entries. The lower directory is read again, so a change that the host has made
// too is none.
type differ struct {
	prefix  string
	since   time.Time
	upper   beneath
	lower   *beneath // nil: none
	marks   marks
	room    *int     // bytes by which the list may still grow
	paths   []string // whose contents are read
	changes []Change
	moves   moves

	sums        *sums             // nil: no file is read
	judged      bool              // the host has a directory below: it may get the changes
	parsedBytes int               // of files whose text was judged
	dotFolders  map[string]string // new folders whose names begin with a dot, and why they are unknown; "": they are not
}

// view describes the lower directory that belongs to a directory of the upper one.
type view struct {
	present bool   // the lower directory exists
	hidden  bool   // an opaque directory covers it: for the agent it is gone
	rel     string // of the lower directory: another one below a renamed directory
}

// diffUpper compares one upper directory. The upper is opened with the caller's rights, the
// host's directory with those that access has for it.
func diffUpper(ctx context.Context, upper Upper, read marks, room *int, access Access) ([]Change, error) {
	host := access.Host[upper.Prefix]
	d := &differ{prefix: upper.Prefix, since: upper.Since, marks: read, room: room, paths: access.Contents, judged: upper.Lower != "", dotFolders: map[string]string{}}
	if slices.Contains(access.Sums, upper.Prefix) {
		d.sums = &sums{linked: map[uint64]string{}}
	}
	var err error
	if d.upper, err = openBeneath(upper.Dir, 0, nil); err != nil {
		return nil, err
	}
	defer d.upper.close()
	if upper.Lower != "" {
		lower, err := openBeneath(upper.Lower, 0, host)
		switch {
		case err == nil:
			defer lower.close()
			d.lower = &lower
		case host == nil || !errors.Is(err, unix.EACCES): // what the user may not read counts as absent
			return nil, err
		}
	}
	if d.moves, err = movesIn(ctx, d.upper, d.marks); err != nil {
		return nil, err
	}
	if d.lower != nil {
		d.moves.settle(*d.lower)
	}
	err = d.walk(ctx, "", view{present: d.lower != nil})
	d.markUnknown()
	return d.changes, err
}

// walk compares the directory rel. It holds no descriptor during the recursion: an agent's
// tree may be 2000 levels deep.
func (d *differ) walk(ctx context.Context, rel string, seen view) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	deeper, err := d.directory(ctx, rel, &seen)
	if err != nil {
		return err
	}
	for _, sub := range deeper {
		if err := d.walk(ctx, path.Join(rel, sub.name), sub.below); err != nil {
			return err
		}
	}
	return nil
}

// subdir is a directory of the upper one that remains to be walked.
type subdir struct {
	name  string
	below view
}

// directory records the changes among the entries of rel, and returns the directories among them.
func (d *differ) directory(ctx context.Context, rel string, seen *view) ([]subdir, error) {
	upper, err := d.upper.openDir(rel)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", printable(rel), err)
	}
	defer upper.Close()
	opaque, _, err := d.marks(upper, ".", "opaque")
	if err != nil {
		return nil, err
	}
	seen.hidden = seen.hidden || opaque == "y"
	var lower *os.File
	if seen.present {
		// Three errors mean that the host has nothing to compare with: no such directory, a
		// mount that the agent never saw, or no permission for the user.
		if lower, err = d.lower.openDir(seen.rel); err == nil {
			defer lower.Close()
		} else if !gone(err) && err != unix.EXDEV && !d.lower.hides(err) {
			return nil, fmt.Errorf("cannot open the host's %s: %w", printable(rel), err)
		}
	}
	names, err := namesIn(upper)
	if err != nil {
		return nil, err
	}
	at := &place{differ: d, rel: rel, seen: *seen, upper: upper, lower: lower}
	deeper, err := at.compareAll(ctx, names)
	if err == nil && seen.hidden && lower != nil {
		err = at.deleteHidden(ctx, names)
	}
	return deeper, err
}

// gone reports whether err means that the directory does not exist, or not any more.
func gone(err error) bool {
	return err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP
}

// list appends c if there is space. The space is an estimate of the memory that the list
// takes.
func (d *differ) list(c Change) error {
	if *d.room -= int(unsafe.Sizeof(c)) + len(c.Path) + len(c.Target) + len(c.From) + len(c.Sum); *d.room < 0 {
		return errTooMany
	}
	d.changes = append(d.changes, c)
	return nil
}
