package rootfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// written remembers where a file with several hard links was written, so that its other
// names become hard links too. With copies, one file of the layer could fill the host's
// disk once for each of its names.
type written struct {
	rel   string
	ino   uint64
	names []string // under which the file was written
	count uint64   // the names that it has in the layer
}

// stage makes e under the staged name, complete and flushed to disk.
func (a *applier) stage(ctx context.Context, e layerEntry) error {
	switch fileType(e.st.Mode) {
	case TypeDir:
		return a.stageDir(e)
	case TypeSymlink:
		return a.stageLink(e)
	}
	// The usual case; only a file with several names needs the table of links.
	if e.st.Nlink == 1 {
		return a.stageFile(ctx, e)
	}
	linked, err := a.stageHardLink(e)
	if err != nil || linked {
		return err
	}
	return a.stageFile(ctx, e)
}

// stageDir makes the directory with mode 0700, so that no other user can enter it before it has its owner.
func (a *applier) stageDir(e layerEntry) error {
	if err := unix.Mkdirat(int(a.parent.dir.Fd()), stagedName, 0o700); err != nil {
		return err
	}
	dir, err := a.openStaged(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer dir.Close()
	if from, err := a.upper.openDir(e.rel); err == nil {
		a.lose(e, from)
		from.Close()
	}
	return a.handOver(dir, e)
}

// stageLink makes a symbolic link. Only O_PATH can open a link itself.
func (a *applier) stageLink(e layerEntry) error {
	if err := unix.Symlinkat(e.link, int(a.parent.dir.Fd()), stagedName); err != nil {
		return err
	}
	link, err := a.openStaged(unix.O_PATH)
	if err != nil {
		return err
	}
	defer link.Close()
	return errors.Join(a.give(link), a.setTimes(link, e.st))
}

// openStaged opens what was just made under the staged name, and checks that it is that:
// the owner of the directory could have replaced it by another file, to become its owner.
func (a *applier) openStaged(flags uint64) (*os.File, error) {
	file, err := beneath{root: a.parent.dir}.open(stagedName, flags)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(file.Fd()), &st)
	if err == nil && (st.Uid != nsthread.FileUID() || fileType(st.Mode) != TypeDir && st.Nlink != 1) {
		err = refusal("something else was put in its place")
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// handOver sets the owner before the permissions, because chown(2) clears the set-ID bits.
func (a *applier) handOver(file *os.File, e layerEntry) error {
	if err := a.give(file); err != nil {
		return err
	}
	if err := unix.Fchmod(int(file.Fd()), e.st.Mode&rwx); err != nil {
		return err
	}
	return a.setTimes(file, e.st)
}

// give makes the owner of target the owner of file. A user other than root remains the
// owner of the files that the user makes, with target's group where the user is a member.
func (a *applier) give(file *os.File) error {
	uid, own := int(a.owner.Uid), nsthread.FileUID()
	if own != 0 {
		uid = -1
	}
	err := unix.Fchownat(int(file.Fd()), "", uid, int(a.owner.Gid), unix.AT_EMPTY_PATH)
	if own != 0 && err == unix.EPERM {
		return nil
	}
	return err
}

// stageFile copies the content and flushes it before the rename: after a power cut the name
// must not refer to an empty file.
func (a *applier) stageFile(ctx context.Context, e layerEntry) error {
	from, err := a.upper.openRegular(e.rel)
	if err != nil {
		return err
	}
	defer from.Close()
	fd, err := unix.Openat(int(a.parent.dir.Fd()), stagedName,
		unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(fd), stagedName)
	defer to.Close()
	a.lose(e, from)
	if err := copyData(ctx, to, from, e.st.Size); err != nil {
		return err
	}
	if err := errors.Join(a.handOver(to, e), to.Sync()); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	// With the inode on the host, by which stageHardLink finds out whether it is still the
	// same file.
	if e.st.Nlink > 1 {
		a.links[e.st.Ino] = &written{e.rel, st.Ino, []string{e.rel}, e.st.Nlink}
	}
	return nil
}

// copyData copies data and leaves holes: a sparse file can claim far more bytes than the layer has.
func copyData(ctx context.Context, to, from *os.File, size int64) error {
	if err := to.Truncate(size); err != nil {
		return err
	}
	for offset := int64(0); offset < size; {
		start, err := unix.Seek(int(from.Fd()), offset, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return nil // only a hole is left
		}
		if err != nil {
			return fmt.Errorf("cannot find its data: %w", err)
		}
		if offset, err = unix.Seek(int(from.Fd()), start, unix.SEEK_HOLE); err != nil {
			return fmt.Errorf("cannot find its holes: %w", err)
		}
		if err := copyRange(ctx, to, from, start, min(offset, size)); err != nil {
			return err
		}
	}
	return nil
}

// copyRange copies the bytes from start to end, in pieces so that it can be cancelled.
func copyRange(ctx context.Context, to, from *os.File, start, end int64) error {
	const piece = 8 << 20
	if _, err := to.Seek(start, io.SeekStart); err != nil {
		return err
	}
	if _, err := from.Seek(start, io.SeekStart); err != nil {
		return err
	}
	for start < end {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A file that became shorter meanwhile is an error (io.EOF), so no file is put in
		// place that lacks its end.
		n, err := io.CopyN(to, from, min(piece, end-start))
		if err != nil {
			return err
		}
		start += n
	}
	return nil
}

// stageHardLink links the staged name to the file that was written for another name of e,
// if that file is still there.
func (a *applier) stageHardLink(e layerEntry) (linked bool, err error) {
	first, ok := a.links[e.st.Ino]
	if !ok {
		return false, nil
	}
	dir, err := a.target.openDir(path.Dir(first.rel))
	if err != nil {
		return false, nil
	}
	defer dir.Close()
	to := int(a.parent.dir.Fd())
	// Without AT_SYMLINK_FOLLOW: if a link has the name by now, the link itself is linked,
	// and its inode number is not the one that was written.
	if err := unix.Linkat(int(dir.Fd()), path.Base(first.rel), to, stagedName, 0); err != nil {
		return false, fmt.Errorf("cannot link it to %s: %w", printable(first.rel), err)
	}
	st, ok, err := statAt(a.parent.dir, stagedName)
	if err == nil && ok && st.Ino == first.ino {
		first.names = append(first.names, e.rel)
		return true, nil
	}
	return false, errors.Join(err, unix.Unlinkat(to, stagedName, 0))
}
