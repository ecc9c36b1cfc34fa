package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Diff lists what the agent changed, sorted by path. It compares each upper
// directory with the host's directory below it, as that one is now.
//
// Content, type, permission bits and the text of links count; owners (the id
// map shifts them), times and extended attributes do not. A directory is
// listed when it is new or its own permission bits changed, never for what it
// holds, and the top of an upper directory never is: it belongs to whoever
// mounted it.
func Diff(ctx context.Context, uppers []Upper, access Access) ([]Change, error) {
	var changes []Change
	room := cmp.Or(access.ListBytes, maxListBytes)
	for _, upper := range uppers {
		found, err := diffUpper(ctx, upper, overlayMark, &room, access.Host[upper.Prefix])
		if err != nil {
			return nil, fmt.Errorf("cannot compare %s: %w", printable(upper.Prefix), err)
		}
		changes = append(changes, found...)
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Path, b.Path) })
	return changes, nil
}

// Access says with whose rights files are read and written, and how much a
// list may hold. The zero value is for whoever may do everything.
type Access struct {
	// Layer reads the layer, which takes root's rights. nil: where it is called.
	Layer Rights
	// Host is, by the prefix of an upper, who looks at the host's directory below
	// it: whose look it is must not learn what it could not see itself. nil: the
	// caller of Diff. What may not be seen counts as absent.
	Host map[string]Rights
	// ListBytes bounds the list of changes; 0: maxListBytes.
	ListBytes int
}

// marks reads overlayfs attributes; tests without privilege bring their own.
type marks func(dir *os.File, name, mark string) (value string, ok bool, err error)

// differ walks one upper directory.
type differ struct {
	prefix  string
	upper   beneath
	lower   *beneath // nil: there is none
	marks   marks
	room    *int // bytes that the list may still grow by
	changes []Change
}

// view says what of the lower directory a directory of the upper one can see.
type view struct {
	present bool // the lower one has a directory here
	hidden  bool // it is covered by an opaque directory: gone for the agent
}

func diffUpper(ctx context.Context, upper Upper, read marks, room *int, host Rights) ([]Change, error) {
	d := &differ{prefix: upper.Prefix, marks: read, room: room}
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
		case host == nil || !errors.Is(err, unix.EACCES): // what may not be seen is not there
			return nil, err
		}
	}
	err = d.walk(ctx, "", view{present: d.lower != nil})
	return d.changes, err
}

// walk compares the directory rel. It holds no descriptor while it goes
// deeper: an agent's tree may be 2000 levels deep.
func (d *differ) walk(ctx context.Context, rel string, seen view) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	deeper, err := d.directory(ctx, rel, &seen)
	if err != nil {
		return err
	}
	for _, sub := range deeper {
		if err := d.walk(ctx, path.Join(rel, sub.name), view{sub.merged, seen.hidden}); err != nil {
			return err
		}
	}
	return nil
}

// subdir is a directory of the upper one that is to be walked. merged: the
// lower one has a directory there too.
type subdir struct {
	name   string
	merged bool
}

// directory records the changes among the entries of rel and returns the
// directories among them.
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
		if lower, err = d.lower.openDir(rel); err == nil {
			defer lower.Close()
		} else if !gone(err) && err != unix.EXDEV && !d.lower.hides(err) {
			return nil, fmt.Errorf("cannot open the host's %s: %w", printable(rel), err)
		}
	}
	names, err := namesIn(upper)
	if err != nil {
		return nil, err
	}
	at := &place{differ: d, rel: rel, upper: upper, lower: lower}
	deeper, err := at.compareAll(ctx, names)
	if err == nil && seen.hidden && lower != nil {
		err = at.deleteHidden(names)
	}
	return deeper, err
}

// gone tells whether err means that no directory stands there (any more).
func gone(err error) bool {
	return err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP
}

// list appends c while there is room.
func (d *differ) list(c Change) error {
	if *d.room -= int(unsafe.Sizeof(c)) + len(c.Path) + len(c.Target); *d.room < 0 {
		return errTooMany
	}
	d.changes = append(d.changes, c)
	return nil
}
