package runtime

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/beneath"
)

// in unpacks an archive in a folder.
func (c copier) in(name string, from io.Reader) error {
	// A relative path counts from the agent's root.
	name = path.Clean("/" + name)
	folder, err := beneath.Open(c.root, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return copyFailed(name, err)
	}
	defer folder.Close()
	archive := tar.NewReader(from)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			// The rest behind the archive's end is drained, so that its writer ends.
			_, err = io.Copy(io.Discard, from)
			return err
		}
		if err != nil {
			return fmt.Errorf("cannot read the archive: %w", err)
		}
		if err := c.take(folder, h, archive); err != nil {
			return copyFailed(path.Join(name, h.Name), err)
		}
	}
}

// take makes one thing of the archive. No part of its name may be a link: the
// agent could turn any folder into one while it is looked up.
func (c copier) take(top *os.File, h *tar.Header, data io.Reader) error {
	name := path.Clean(h.Name)
	if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") {
		return &agent.Error{Kind: agent.KindInvalid, Step: "copy", Message: fmt.Sprintf("%q leads out of the folder", h.Name)}
	}
	if name == "." {
		return nil // the folder itself, which is there
	}
	parent, err := folderFor(top, path.Dir(name))
	if err != nil {
		return err
	}
	defer parent.Close()
	base := path.Base(name)
	switch h.Typeflag {
	case tar.TypeDir:
		return c.takeFolder(parent, base, h)
	case tar.TypeReg:
		return replace(parent, base, func(temporary string) error { return writeFile(parent, temporary, h, data) })
	case tar.TypeSymlink:
		return replace(parent, base, func(temporary string) error {
			return unix.Symlinkat(h.Linkname, int(parent.Fd()), temporary)
		})
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "copy", Message: h.Name + " is neither file, folder nor symbolic link"}
}

// folderFor opens a folder below top, and makes what is missing of it: an
// archive need not name the folders of its files.
func folderFor(top *os.File, name string) (*os.File, error) {
	folder, err := beneath.OpenChild(top, name, unix.O_PATH|unix.O_DIRECTORY)
	if !errors.Is(err, unix.ENOENT) || name == "." {
		return folder, err
	}
	above, err := folderFor(top, path.Dir(name))
	if err != nil {
		return nil, err
	}
	defer above.Close()
	if err := unix.Mkdirat(int(above.Fd()), path.Base(name), 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return beneath.OpenChild(above, path.Base(name), unix.O_PATH|unix.O_DIRECTORY)
}

// permissions are the mode bits that are copied: with the sticky bit, without the set-id
// bits.
func permissions(h *tar.Header) uint32 { return uint32(h.Mode) & 0o1777 }

// takeFolder leaves a folder that exists as it is. Its owner always gets rwx, or the files
// that follow could not be made in it.
func (c copier) takeFolder(parent *os.File, base string, h *tar.Header) error {
	err := unix.Mkdirat(int(parent.Fd()), base, permissions(h)|0o700) // the umask is clove's own
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	// Only a folder will do: a file or a link of that name fails here.
	there, err := beneath.OpenChild(parent, base, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	return there.Close()
}

// replace makes something under a temporary name and moves it to its own. What had that
// name before (a link, a pipe, a device) is never opened. The random name makes a collision
// with the agent's files, and with another copy, practically impossible.
func replace(parent *os.File, base string, create func(temporary string) error) error {
	temporary := ".clove-" + rand.Text()
	dir := int(parent.Fd())
	err := create(temporary)
	if err == nil {
		err = unix.Renameat(dir, temporary, dir, base)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0) // it may never have been made
	}
	return err
}

// writeFile makes a new file and never opens an old one: O_EXCL fails on whatever the agent
// put there. The mode comes last, because the umask of clove cuts the one that open(2)
// gets.
func writeFile(parent *os.File, name string, h *tar.Header, data io.Reader) error {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if _, err := io.Copy(file, data); err != nil {
		return err
	}
	if err := unix.Fchmod(fd, permissions(h)); err != nil {
		return err
	}
	modified, err := unix.TimeToTimespec(h.ModTime)
	if err != nil {
		return err
	}
	// Through the name, but not through a link that the agent may have put in its place.
	if err := unix.UtimesNanoAt(int(parent.Fd()), name, []unix.Timespec{modified, modified}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	return file.Close()
}
