package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// place is one directory of the comparison.
type place struct {
	*differ
	rel          string
	seen         view
	upper, lower *os.File // lower is nil if it does not exist
}

// lowerRel is the path of the lower entry name.
func (p *place) lowerRel(name string) string { return path.Join(p.seen.rel, name) }

// compareAll compares the entries one by one, and returns the directories to descend into.
func (p *place) compareAll(ctx context.Context, names []string) ([]subdir, error) {
	var deeper []subdir
	for _, name := range names {
		isDir, below, err := p.compare(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("cannot compare %s: %w", printable(path.Join(p.rel, name)), err)
		}
		if !isDir {
			continue
		}
		// An entry of this directory could have a path that openat2 does not take, so it is
		// not entered.
		if len(p.rel)+1+len(name)+1+unix.NAME_MAX > maxPath {
			if err := p.tooDeep(name); err != nil {
				return nil, err
			}
			continue
		}
		deeper = append(deeper, subdir{name, below})
	}
	return deeper, nil
}

// compare records what happened to name, an entry of the upper directory. below is the lower
// directory of one.
func (p *place) compare(ctx context.Context, name string) (isDir bool, below view, err error) {
	now, ok, err := statAt(p.upper, name)
	if err != nil || !ok {
		return false, below, err
	}
	var before unix.Stat_t
	existed := false
	// An entry that the agent moved away is not below any more.
	if _, moved := p.moves.to[p.lowerRel(name)]; p.lower != nil && !moved {
		if before, existed, err = p.differ.lower.statAt(p.lower, name); err != nil {
			return false, below, err
		}
	}
	// Before the types are compared: a whiteout is a device or an empty file, and says
	// nothing of the agent's own.
	whiteout, err := p.isWhiteout(name, now)
	if err != nil {
		return false, below, err
	}
	if whiteout {
		return false, below, p.whitedOut(ctx, name, before, existed)
	}
	isDir = fileType(now.Mode) == TypeDir
	merged := isDir && existed && fileType(before.Mode) == TypeDir
	if m, renamed := p.moves.from[path.Join(p.rel, name)]; isDir && renamed {
		below, err = p.renamed(ctx, name, m, now, before, existed)
		return true, below, err
	}
	// A directory that was renamed into an opaque one is not covered by it.
	_, settled := p.moves.settled[path.Join(p.rel, name)]
	below = view{present: merged, hidden: p.seen.hidden && !settled, rel: p.lowerRel(name)}
	if isDir && !merged {
		p.newFolder(name)
	}
	if !existed {
		return isDir, below, p.unmatched(ctx, name, now)
	}
	return isDir, below, p.differs(ctx, name, now, before)
}

// differs records an entry that both have, unless it is the same.
func (p *place) differs(ctx context.Context, name string, now, before unix.Stat_t) error {
	same, err := p.same(ctx, name, now, before)
	if err != nil || same {
		return err
	}
	c, err := p.describe(Changed, p.upper, name, now)
	if was := fileType(before.Mode); was != c.Type {
		c.Was = was
	}
	if err == nil {
		err = p.judge(&c, name)
	}
	if err == nil {
		err = errors.Join(p.addSum(ctx, &c, name, now), p.addContents(&c, name, &now, &before))
	}
	return errors.Join(err, p.list(c))
}

// whitedOut records a whiteout. If the lower file does not exist, the host has removed it
// too, which is no change.
func (p *place) whitedOut(ctx context.Context, name string, before unix.Stat_t, existed bool) error {
	switch {
	case existed:
		return p.record(ctx, Deleted, p.lower, name, before)
	case p.differ.lower == nil && p.moves.to[p.lowerRel(name)] == "":
		return p.list(Change{Kind: Deleted, Path: p.sandboxPath(name)})
	}
	return nil
}

// unmatched records an entry that the lower directory does not have. A directory with the
// "origin" attribute was copied up by the kernel, not made by the agent: it came from
// another layer that the agent saw, or the host removed it since. For files the attribute
// proves nothing: the agent may have renamed one.
func (p *place) unmatched(ctx context.Context, name string, now unix.Stat_t) error {
	if fileType(now.Mode) == TypeDir {
		if _, copied, err := p.marks(p.upper, name, "origin"); copied || err != nil {
			return err
		}
	}
	return p.record(ctx, Added, p.upper, name, now)
}

// deleteHidden records what an opaque directory deletes: the lower entries that the upper
// directory does not replace.
func (p *place) deleteHidden(ctx context.Context, names []string) error {
	hidden, err := namesIn(p.lower)
	if err != nil {
		return err
	}
	for _, name := range hidden {
		// names is sorted, see namesIn.
		if _, replaced := slices.BinarySearch(names, name); replaced {
			continue
		}
		before, ok, err := p.differ.lower.statAt(p.lower, name)
		if _, moved := p.moves.to[p.lowerRel(name)]; err == nil && ok && !moved {
			err = p.record(ctx, Deleted, p.lower, name, before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isWhiteout recognises both forms of overlayfs: the character device 0:0, and an empty
// file with an attribute (Linux 6.7).
func (p *place) isWhiteout(name string, st unix.Stat_t) (bool, error) {
	switch fileType(st.Mode) {
	case TypeChar:
		return st.Rdev == 0, nil
	case TypeFile:
		if st.Size == 0 {
			_, ok, err := p.marks(p.upper, name, "whiteout")
			return ok, err
		}
	}
	return false, nil
}

// record lists one change of name in dir, which st describes.
func (p *place) record(ctx context.Context, kind ChangeKind, dir *os.File, name string, st unix.Stat_t) error {
	c, err := p.describe(kind, dir, name, st)
	now, before := &st, (*unix.Stat_t)(nil)
	if kind == Deleted {
		now, before = nil, &st
	} else if err == nil {
		err = errors.Join(p.judge(&c, name), p.addSum(ctx, &c, name, st))
	}
	if err == nil {
		err = p.addContents(&c, name, now, before)
	}
	return errors.Join(err, p.list(c))
}

// describe fills in the attributes of name in dir. Only regular files have a size: that of
// a directory depends on its file system.
func (p *place) describe(kind ChangeKind, dir *os.File, name string, st unix.Stat_t) (c Change, err error) {
	c = Change{Kind: kind, Path: p.sandboxPath(name), Type: fileType(st.Mode), Mode: st.Mode & permissions}
	switch c.Type {
	case TypeFile:
		c.Size = st.Size
	case TypeSymlink:
		tree := p.differ.upper
		if dir == p.lower {
			tree = *p.differ.lower
		}
		c.Target, err = tree.readLink(dir, name)
	}
	return c, err
}

func (p *place) sandboxPath(name string) string {
	return sandboxPath(p.prefix, path.Join(p.rel, name))
}

// tooDeep reports that the directory name was not entered, in the change just recorded for
// it or in one of its own.
func (p *place) tooDeep(name string) error {
	const reason = "its path is too long to look further"
	at := p.sandboxPath(name)
	if last := len(p.changes) - 1; last >= 0 && p.changes[last].Path == at {
		p.changes[last].Refused = reason
		return nil
	}
	return p.list(Change{Kind: Changed, Path: at, Type: TypeDir, Refused: reason})
}
