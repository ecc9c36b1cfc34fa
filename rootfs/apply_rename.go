package rootfs

import (
	"context"
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// rename moves the host's directory that has been renamed, with everything that it holds:
// also files that the agent never touched, and what the host has added. from is where target
// has it now.
func (a *applier) rename(ctx context.Context, c Change, from, rel string) (made bool, err error) {
	if within("/"+rel, "/"+from) {
		return false, errCircle
	}
	e, origin, err := a.renamedEntry(c, rel)
	if err != nil {
		return false, err
	}
	defer e.dir.Close()
	source, err := a.target.openDir(from)
	if gone(err) {
		return false, noOrigin(from)
	}
	if err != nil {
		return false, err
	}
	defer source.Close()
	if !isOrigin(source, origin, a.since) {
		return false, otherOrigin(from)
	}
	if err := a.clearFor(ctx, c, path.Base(rel)); err != nil {
		return false, err
	}
	if err := a.move(source, from, path.Base(rel)); err != nil {
		return false, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &st); err != nil || (st.Mode^e.st.Mode)&rwx == 0 {
		return true, err
	}
	return true, a.chmodDir(e)
}

// renamedEntry describes the layer's directory rel, with its origin. The caller closes its dir.
func (a *applier) renamedEntry(c Change, rel string) (e layerEntry, origin string, err error) {
	dir, err := a.upper.openDir(path.Dir(rel))
	if gone(err) {
		return e, "", errStale
	}
	if err != nil {
		return e, "", err
	}
	if e, err = a.entryAt(dir, c, rel); err == nil {
		err = a.upper.as.do(func() (err error) { origin, _, err = a.marks(dir, e.name, "origin"); return err })
	}
	if err != nil {
		dir.Close()
	}
	return e, origin, err
}

// clearFor removes what has the new name, if the agent saw it there.
func (a *applier) clearFor(ctx context.Context, c Change, name string) error {
	there, exists, err := statAt(a.parent.dir, name)
	switch {
	case err != nil || !exists:
		return err
	case c.Was == "":
		return refusal("the host has something of this name by now")
	}
	if err := a.untouched(ctx, a.parent.dir, name, there); err != nil {
		return err
	}
	a.parent.changed = true
	return removeTree(ctx, a.parent.dir, name)
}

// move renames the open directory source, from below target, to name in the parent. If
// something else was put in its place meanwhile, that is moved back.
func (a *applier) move(source *os.File, from, name string) error {
	above, err := a.target.openDir(path.Dir(from))
	if err != nil {
		return err
	}
	defer above.Close()
	times, err := a.folderTimes(above, path.Dir(from))
	if err != nil {
		return err
	}
	out, in, old := int(above.Fd()), int(a.parent.dir.Fd()), path.Base(from)
	if err := renameFree(out, old, in, name); err != nil {
		return err
	}
	same, err := isEntry(a.parent.dir, name, source)
	if err == nil && !same {
		err = errors.Join(otherOrigin(from), renameFree(in, name, out, old))
	}
	return errors.Join(err, setFolderTimes(above, times), above.Sync())
}

// isEntry reports whether name in dir is the open file.
func isEntry(dir *os.File, name string, file *os.File) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return false, err
	}
	there, ok, err := statAt(dir, name)
	return ok && there.Dev == st.Dev && there.Ino == st.Ino, err
}

// renameFree renames to a free name. RENAME_NOREPLACE detects a file that appeared meanwhile;
// network file systems do not support it.
func renameFree(out int, old string, in int, name string) error {
	err := unix.Renameat2(out, old, in, name, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL || err == unix.ENOSYS {
		err = unix.Renameat(out, old, in, name)
	}
	return err
}
