package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// dirAttr are the attributes of a directory that must be made.
type dirAttr struct {
	Mode     uint32
	UID, GID uint32 // inside
	Direct   bool   // no link on the way is followed
}

// openInside opens a path of the root under construction. With RESOLVE_IN_ROOT the kernel
// keeps the walk below the root, whatever the links in it say.
func (b *builder) openInside(p string, flags uint64) (*os.File, error) {
	return openat2(int(b.root.Fd()), p, &unix.OpenHow{Flags: flags | unix.O_PATH, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// makeDir opens the directory at p inside, and makes it and its parents if they are
// missing. Parents belong to the sandbox's root.
func (b *builder) makeDir(p string, attr dirAttr) (*os.File, error) {
	dir, err := b.openInside("/", unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	walked := "/"
	for _, name := range strings.FieldsFunc(p, func(r rune) bool { return r == '/' }) {
		walked = path.Join(walked, name)
		own := dirAttr{Mode: 0o755, Direct: attr.Direct}
		if walked == p {
			own = attr
		}
		// By the whole path from the root, not by the name in dir: a link on the way is
		// resolved inside the root.
		next, err := b.openOrMake(dir, name, walked, own)
		dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// openOrMake opens the directory walked, whose parent is open as dir. A missing one is made
// with mode 0700 and gets its owner and mode through its handle, because the path may be
// replaced meanwhile.
func (b *builder) openOrMake(dir *os.File, name, walked string, attr dirAttr) (*os.File, error) {
	if attr.Direct {
		if err := b.checkDirect(walked); err != nil && !errors.Is(err, unix.ENOENT) {
			return nil, err
		}
	}
	next, err := b.openInside(walked, unix.O_DIRECTORY)
	if err == nil {
		return next, nil
	}
	if !errors.Is(err, unix.ENOENT) {
		return nil, insideError(walked, err)
	}
	if err := unix.Mkdirat(int(dir.Fd()), name, 0o700); err != nil {
		return nil, insideError(walked, err)
	}
	b.tree.table.Made = append(b.tree.table.Made, walked)
	next, err = b.openInside(walked, unix.O_DIRECTORY)
	if err != nil {
		return nil, insideError(walked, err)
	}
	if err := unix.Chown(fdPath(next), int(b.cfg.HostID+attr.UID), int(b.cfg.HostID+attr.GID)); err != nil {
		next.Close()
		return nil, insideError(walked, err)
	}
	if err := unix.Chmod(fdPath(next), attr.Mode); err != nil {
		next.Close()
		return nil, insideError(walked, err)
	}
	return next, nil
}

// checkDirect refuses a path of the root under construction that has a link in it.
func (b *builder) checkDirect(p string) error {
	file, err := openat2(int(b.root.Fd()), p, &unix.OpenHow{Flags: unix.O_PATH, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return insideError(p, err)
	}
	return file.Close()
}

// makeFile opens the file at p inside, and makes an empty one if it is missing.
func (b *builder) makeFile(p string) (*os.File, error) {
	parent, err := b.makeDir(path.Dir(p), dirAttr{Mode: 0o755})
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	file, err := b.openInside(p, 0)
	if errors.Is(err, unix.ENOENT) {
		// A mount point for a file. O_EXCL and O_NOFOLLOW fail on a link that leads
		// nowhere, see insideError.
		fd, createErr := unix.Openat(int(parent.Fd()), path.Base(p), unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_WRONLY, 0o644)
		if createErr != nil {
			return nil, insideError(p, createErr)
		}
		defer unix.Close(fd)
		b.tree.table.Made = append(b.tree.table.Made, p)
		if err := unix.Fchown(fd, int(b.cfg.HostID), int(b.cfg.HostID)); err != nil {
			return nil, insideError(p, err)
		}
		file, err = b.openInside(p, 0)
	}
	if err != nil {
		return nil, insideError(p, err)
	}
	if info, err := file.Stat(); err != nil || info.IsDir() {
		file.Close()
		return nil, fmt.Errorf("cannot mount a file on the directory %s", p)
	}
	return file, nil
}

// insideError explains an errno for a path that the root's maker chose.
func insideError(p string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP):
		return fmt.Errorf("cannot use %s of the root: a symbolic link is in its place: %w", p, err)
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("cannot use %s of the root: not a directory: %w", p, err)
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("cannot use %s of the root: a symbolic link that leads nowhere is in its place: %w", p, err)
	}
	return fmt.Errorf("cannot use %s of the root: %w", p, err)
}
