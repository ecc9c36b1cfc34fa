package rootfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// maxPath is PATH_MAX without the final NUL. A deeper tree cannot be named in one system
// call, so it is reported and not entered.
const maxPath = unix.PathMax - 1

// Bounds on the memory that a layer can make Diff use: with hard links of one file, an
// agent can put some 90 million names into 1 GiB.
const (
	maxNames     = 1 << 20   // in one directory
	maxListBytes = 512 << 20 // of all changes; 2 million usual ones
)

// Rights runs a function on a thread with certain rights over files. nil runs it in place.
type Rights func(func() error) error

func (r Rights) do(f func() error) error {
	if r == nil {
		return f()
	}
	return r(f)
}

// beneath is a directory whose methods never read or write outside of it. They refuse
// symbolic links in every component, and mount points, because the agent never saw what is
// mounted there. Operations that check permissions run with the rights of as; those on open
// files need none.
type beneath struct {
	root *os.File
	as   Rights
}

// openBeneath opens the directory dir. resolve are the RESOLVE_* flags of openat2(2) for
// the path to it, which must not lead through a hostile tree.
func openBeneath(dir string, resolve uint64, as Rights) (beneath, error) {
	b := beneath{as: as}
	err := as.do(func() (err error) {
		b.root, err = openat2(unix.AT_FDCWD, dir, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY, Resolve: resolve})
		return err
	})
	if err != nil {
		return beneath{}, fmt.Errorf("cannot open directory %s: %w", printable(dir), err)
	}
	return b, nil
}

func (b beneath) close() { b.root.Close() }

// hides reports whether err only means that the user lacks permission.
func (b beneath) hides(err error) bool { return b.as != nil && err == unix.EACCES }

// open opens rel; "" is the directory itself.
func (b beneath) open(rel string, flags uint64) (file *os.File, err error) {
	err = b.as.do(func() (err error) {
		file, err = openat2(int(b.root.Fd()), path.Join(".", rel), &unix.OpenHow{
			Flags: flags | unix.O_NOFOLLOW,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS |
				unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV})
		return err
	})
	return file, err
}

// statAt and readLink apply to name in dir, a directory of this tree.
func (b beneath) statAt(dir *os.File, name string) (st unix.Stat_t, ok bool, err error) {
	err = b.as.do(func() (err error) { st, ok, err = statAt(dir, name); return err })
	if b.hides(err) {
		err = nil
	}
	return st, ok, err
}

func (b beneath) readLink(dir *os.File, name string) (target string, err error) {
	err = b.as.do(func() (err error) { target, err = readLink(dir, name); return err })
	return target, err
}

// openDir opens the directory rel to read its names.
func (b beneath) openDir(rel string) (*os.File, error) {
	return b.open(rel, unix.O_RDONLY|unix.O_DIRECTORY)
}

// openRegular opens the regular file rel for reading and refuses everything else.
// O_NONBLOCK, because the open of a FIFO would otherwise block.
func (b beneath) openRegular(rel string) (*os.File, error) {
	file, err := b.open(rel, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil || fileType(st.Mode) != TypeFile {
		file.Close()
		return nil, fmt.Errorf("not a regular file: %w", errors.Join(err, unix.EINVAL))
	}
	return file, nil
}

// openat2 opens name in dir by the rules of how.
func openat2(dir int, name string, how *unix.OpenHow) (*os.File, error) {
	how.Flags |= unix.O_CLOEXEC
	fd, err := descriptor.Openat2(dir, name, how)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), printable(name)), nil
}

// statAt describes name in dir without following a link; ok is false if it does not exist.
func statAt(dir *os.File, name string) (st unix.Stat_t, ok bool, err error) {
	err = unix.Fstatat(int(dir.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT)
	if err == unix.ENOENT {
		return st, false, nil
	}
	return st, err == nil, err
}

// readLink returns the target of the symbolic link name in dir.
func readLink(dir *os.File, name string) (string, error) {
	buffer := make([]byte, unix.PathMax) // no link is longer
	n, err := unix.Readlinkat(int(dir.Fd()), name, buffer)
	if err != nil {
		return "", err
	}
	return string(buffer[:n]), nil
}

// namesIn lists dir, sorted. A directory with more than maxNames entries is an error.
func namesIn(dir *os.File) ([]string, error) {
	var names []string
	for {
		batch, err := dir.Readdirnames(1024)
		names = append(names, batch...)
		switch {
		case errors.Is(err, io.EOF):
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, err
		// Checked after each batch, so that the bound also holds while reading.
		case len(names) > maxNames:
			return nil, errTooMany
		}
	}
}

var errTooMany = errors.New("the layer holds more names than can be listed")

// overlayMark reads the overlayfs attribute of name in dir. Only the kernel writes
// trusted.*. The agent's own attributes of that name are stored under an escaped name, and
// its user.overlay.* have no effect without the mount option userxattr.
func overlayMark(dir *os.File, name, mark string) (value string, ok bool, err error) {
	var buffer [unix.PathMax]byte // room for a path, or a file handle with its header
	at := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
	n, err := unix.Lgetxattr(at, "trusted.overlay."+mark, buffer[:])
	switch err {
	case nil:
		return string(buffer[:n]), true, nil
	case unix.ENODATA, unix.ENOTSUP:
		return "", false, nil
	}
	return "", false, fmt.Errorf("cannot read overlay attribute %s: %w", mark, err)
}

// sandboxPath joins prefix and rel.
func sandboxPath(prefix, rel string) string {
	return strings.TrimSuffix(prefix, "/") + "/" + rel
}
