package rootfs

import (
	"context"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// rwx are the permission bits that Apply copies. The others (setuid, setgid, sticky) would
// give the owner's rights to others.
const rwx = 0o777

// layerEntry is one entry of the layer that Apply writes to the host.
type layerEntry struct {
	side        // in the layer
	link string // the target of a symbolic link
}

// write puts the layer's entry rel into the parent.
func (a *applier) write(ctx context.Context, c Change, rel string) (made bool, err error) {
	dir, err := a.upper.openDir(path.Dir(rel))
	if gone(err) {
		return false, errStale
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	e, err := a.entryAt(dir, c, rel)
	if err != nil {
		return false, err
	}
	there, exists, err := statAt(a.parent.dir, e.name)
	if err != nil {
		return false, err
	}
	if !exists {
		return true, a.create(ctx, e)
	}
	if same, err := a.sameOnHost(ctx, e, there); err != nil || same {
		return false, err
	}
	// It was not there when the changes were listed, so the person who agreed did not agree
	// to replace it.
	if c.Kind == Added {
		return false, refusal("the host has something of this name by now")
	}
	// A directory that both have keeps its entries; each of those is a change of its own.
	if fileType(there.Mode) == TypeDir && c.Type == TypeDir {
		return true, a.chmodDir(e)
	}
	if err := a.untouched(ctx, a.parent.dir, e.name, there); err != nil {
		return false, err
	}
	return true, a.replace(ctx, e, there)
}

// entryAt describes the layer's entry rel, and refuses types that are never written to a host.
func (a *applier) entryAt(dir *os.File, c Change, rel string) (layerEntry, error) {
	name := path.Base(rel)
	st, ok, err := a.upper.statAt(dir, name)
	switch {
	case err != nil:
		return layerEntry{}, err
	case !ok || fileType(st.Mode) != c.Type:
		return layerEntry{}, errStale
	}
	e := layerEntry{side: side{a.upper, dir, name, rel, st}}
	switch c.Type {
	case TypeFile, TypeDir:
		return e, nil
	case TypeSymlink:
		if e.link, err = a.upper.readLink(dir, name); err == nil && !staysBelow(rel, e.link) {
			err = refusal("the link may lead out of the workspace")
		}
		return e, err
	case TypeFIFO, TypeSocket:
		return e, refusal("a " + string(c.Type) + " is not written to the host")
	}
	return e, refusal("a device is not written to the host")
}

// staysBelow reports whether a symbolic link at rel cannot lead out of the tree. ".." is
// allowed at the start only, where it climbs directories that are no links. After a name,
// which may be a link itself, the result of ".." is unknown. A chain of links that all obey
// this ends inside too.
func staysBelow(rel, link string) bool {
	if link == "" || strings.HasPrefix(link, "/") {
		return false
	}
	depth := strings.Count(rel, "/")
	named := false
	for element := range strings.SplitSeq(link, "/") {
		switch {
		case element == "" || element == ".":
		case element != "..":
			named = true
		case named || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}

// sameOnHost reports whether the host already has e, as far as Apply writes it.
func (a *applier) sameOnHost(ctx context.Context, e layerEntry, there unix.Stat_t) (bool, error) {
	mask := uint32(unix.S_IFMT | rwx)
	if fileType(e.st.Mode) == TypeSymlink {
		mask = unix.S_IFMT
	}
	if (e.st.Mode^there.Mode)&mask != 0 {
		return false, nil
	}
	host := side{a.target, a.parent.dir, e.name, e.rel, there}
	return sameContent(ctx, e.side, host)
}

// chmodDir sets the layer's permissions on a directory of the host. The set-ID and sticky
// bits stay the host's.
func (a *applier) chmodDir(e layerEntry) error {
	dir, err := a.target.openDir(e.rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return err
	}
	return unix.Fchmod(int(dir.Fd()), st.Mode&(permissions&^rwx)|e.st.Mode&rwx)
}

// create renames e to a free name.
func (a *applier) create(ctx context.Context, e layerEntry) error {
	return a.stageAnd(ctx, e, func(dir int) error { return renameFree(dir, stagedName, dir, e.name) })
}

// replace renames e over an existing entry. rename(2) cannot replace a file by a directory
// or the reverse. In that case the two are exchanged, and the old one is removed under the
// staged name.
func (a *applier) replace(ctx context.Context, e layerEntry, there unix.Stat_t) error {
	swap := fileType(e.st.Mode) == TypeDir || fileType(there.Mode) == TypeDir
	return a.stageAnd(ctx, e, func(dir int) error {
		if !swap {
			return unix.Renameat(dir, stagedName, dir, e.name)
		}
		err := unix.Renameat2(dir, stagedName, dir, e.name, unix.RENAME_EXCHANGE)
		if err == unix.EINVAL || err == unix.ENOSYS {
			return refusal("its file system cannot swap a directory and a file in one element")
		}
		return err
	})
}

// stageAnd stages e, calls move, and then removes whatever has the staged name.
func (a *applier) stageAnd(ctx context.Context, e layerEntry, move func(dir int) error) error {
	err := a.stage(ctx, e)
	if err == nil {
		err = move(int(a.parent.dir.Fd()))
	}
	if cleared := a.clearStaged(); err == nil {
		return cleared
	}
	return err
}
