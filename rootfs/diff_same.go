package rootfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// permissions are the bits of st_mode that chmod(2) sets.
const permissions = 0o7777

// same reports whether name in the upper directory equals name in the lower one.
func (p *place) same(ctx context.Context, name string, now, before unix.Stat_t) (bool, error) {
	if (now.Mode^before.Mode)&(unix.S_IFMT|permissions) != 0 {
		return p.mountedOn(p.lowerRel(name), now, before)
	}
	return sameContent(ctx, side{p.differ.upper, p.upper, name, path.Join(p.rel, name), now}, side{*p.differ.lower, p.lower, name, p.lowerRel(name), before})
}

// mountedOn reports whether the host has mounted something on the directory rel. Then its
// permissions are those of the mount, which the agent never saw.
func (p *place) mountedOn(rel string, now, before unix.Stat_t) (bool, error) {
	if fileType(now.Mode) != TypeDir || fileType(before.Mode) != TypeDir {
		return false, nil
	}
	dir, err := p.differ.lower.openDir(rel)
	if err != nil {
		return err == unix.EXDEV || p.differ.lower.hides(err), nil
	}
	return false, dir.Close()
}

// side is one of two entries of the same type that are compared. Links are read by dir and
// name; files are opened by rel, from the root of tree, which checks every component.
type side struct {
	tree beneath
	dir  *os.File
	name string
	rel  string
	st   unix.Stat_t
}

// sameContent compares two entries of one type, without their permissions.
func sameContent(ctx context.Context, a, b side) (bool, error) {
	switch fileType(a.st.Mode) {
	case TypeFile:
		if a.st.Size != b.st.Size {
			return false, nil
		}
		return sameBytes(ctx, a, b)
	case TypeSymlink:
		left, err := a.tree.readLink(a.dir, a.name)
		if err != nil {
			return false, err
		}
		right, err := b.tree.readLink(b.dir, b.name)
		return left == right, err
	case TypeChar, TypeBlock:
		return a.st.Rdev == b.st.Rdev, nil
	}
	return true, nil
}

// sameBytes compares two regular files of equal size. It stops at the first difference, so
// a huge sparse file costs no more than the host's own file.
func sameBytes(ctx context.Context, a, b side) (bool, error) {
	left, err := a.tree.openRegular(a.rel)
	if err != nil {
		return false, err
	}
	defer left.Close()
	right, err := b.tree.openRegular(b.rel)
	if err == unix.EXDEV || b.tree.hides(err) { // a mount, which the agent never saw, or unreadable for the user
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer right.Close()
	size := min(a.st.Size+1, 64<<10) // one byte more than a small file, to reach its end with one read
	leftBuffer, rightBuffer := make([]byte, size), make([]byte, size)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		// In full, because a short read of one side would look like a difference.
		n, err := io.ReadFull(left, leftBuffer)
		m, otherErr := io.ReadFull(right, rightBuffer)
		if !bytes.Equal(leftBuffer[:n], rightBuffer[:m]) {
			return false, nil
		}
		switch {
		case ended(err) && ended(otherErr):
			return true, nil
		case ended(err), ended(otherErr):
			return false, nil
		case err != nil || otherErr != nil:
			return false, errors.Join(err, otherErr)
		}
	}
}

// ended reports whether io.ReadFull reached the end of the file.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
