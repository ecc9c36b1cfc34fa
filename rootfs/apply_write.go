package rootfs

import (
	"context"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// rwx are the permission bits that are carried over to the host; the others
// (setuid, setgid, sticky) would act with the owner's rights.
const rwx = 0o777

// layerEntry is one entry of the layer on its way to the host.
type layerEntry struct {
	side        // in the layer
	link string // what a symbolic link says
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
	if c.Kind == Added {
		return false, refusal("the host has something of this name by now")
	}
	if fileType(there.Mode) == TypeDir && c.Type == TypeDir {
		return true, a.chmodDir(e)
	}
	if err := a.untouched(ctx, a.parent.dir, e.name, there); err != nil {
		return false, err
	}
	return true, a.replace(ctx, e, there)
}

// entryAt describes what the layer has at rel and refuses what is never
// written to a host.
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

// staysBelow tells whether a symbolic link at rel that says link cannot lead
// out of the tree. Steps up may only come first, where they climb real
// directories: after a name, which may be a link itself, nobody knows what
// ".." is. Each link that obeys this ends inside, and so does a chain of them.
func staysBelow(rel, link string) bool {
	if link == "" || strings.HasPrefix(link, "/") {
		return false
	}
	depth := strings.Count(rel, "/")
	named := false
	for step := range strings.SplitSeq(link, "/") {
		switch {
		case step == "" || step == ".":
		case step != "..":
			named = true
		case named || depth == 0:
			return false
		default:
			depth--
		}
	}
	return true
}

// sameOnHost tells whether the host has e already, as far as Apply writes it.
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

// chmodDir gives a directory of the host the layer's permissions. Its other
// bits are the host's own.
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

// create puts e where nothing was. RENAME_NOREPLACE because something may
// have come since; network file systems do not know it.
func (a *applier) create(ctx context.Context, e layerEntry) error {
	return a.stageAnd(ctx, e, func(dir int) error {
		err := unix.Renameat2(dir, stagedName, dir, e.name, unix.RENAME_NOREPLACE)
		if err == unix.EINVAL || err == unix.ENOSYS {
			err = unix.Renameat(dir, stagedName, dir, e.name)
		}
		return err
	})
}

// replace puts e where there is something. rename(2) cannot put a directory
// in the place of a file or the other way, so these change places, and the old
// one is removed under the staged name.
func (a *applier) replace(ctx context.Context, e layerEntry, there unix.Stat_t) error {
	swap := fileType(e.st.Mode) == TypeDir || fileType(there.Mode) == TypeDir
	return a.stageAnd(ctx, e, func(dir int) error {
		if !swap {
			return unix.Renameat(dir, stagedName, dir, e.name)
		}
		err := unix.Renameat2(dir, stagedName, dir, e.name, unix.RENAME_EXCHANGE)
		if err == unix.EINVAL || err == unix.ENOSYS {
			return refusal("its file system cannot swap a directory and a file in one step")
		}
		return err
	})
}

// stageAnd prepares e under the staged name, calls move, and removes whatever
// has the staged name then.
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
