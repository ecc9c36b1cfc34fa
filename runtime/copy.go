package runtime

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/beneath"
	"clove.run/clove/internal/sparse"
)

// CopyOut writes the file, folder or symbolic link at path as a tar archive
// whose names begin with path's last element. It reads what the agent could,
// and no link leads it out of the agent's root. Anything in a folder besides
// files, folders and links (pipes, sockets, devices), and what the agent may not
// read, is left out; the error that names it comes after everything else.
func (l *Live) CopyOut(ctx context.Context, path string, to io.Writer) error {
	return l.copyOut(ctx, false, to, func(c copier, archive io.Writer) error { return c.out(path, archive) })
}

func (l *Live) copyOut(ctx context.Context, confined bool, to io.Writer, out func(copier, io.Writer) error) error {
	from, archive := io.Pipe()
	copied := make(chan error, 1)
	begun := false
	err := l.withFiles(ctx, confined, func(cause error) { archive.CloseWithError(cause); from.CloseWithError(cause) }, func(c copier) error {
		begun = true
		go func() {
			_, err := io.Copy(to, from)
			from.CloseWithError(err) // ends the archive if its reader is gone
			copied <- err
		}()
		err := out(c, archive)
		var left *leftOut
		if errors.As(err, &left) {
			archive.Close() // it is whole but for what the error names
		} else {
			archive.CloseWithError(err)
		}
		return err
	})
	if begun {
		// The writer is the caller's: no goroutine may use it once this returns. Without
		// begun nothing is ever sent on copied.
		err = cmp.Or(err, <-copied)
	}
	return err
}

// CopyIn unpacks a tar archive in the folder at path, which must exist. It
// writes where the agent could, files are the agent's, and set-id bits are
// dropped. A file takes the place of what had its name, and is never written
// through it. Only files, folders and symbolic links are taken.
func (l *Live) CopyIn(ctx context.Context, path string, from io.Reader) error {
	return l.copyIn(ctx, false, from, func(c copier, archive io.Reader) error { return c.in(path, archive) })
}

func (l *Live) copyIn(ctx context.Context, confined bool, from io.Reader, in func(copier, io.Reader) error) error {
	archive, to := io.Pipe()
	return l.withFiles(ctx, confined, func(cause error) { archive.CloseWithError(cause); to.CloseWithError(cause) }, func(c copier) error {
		go func() {
			// It may outlast the copy, in a read from the caller's side; its next write
			// fails then.
			_, err := io.Copy(to, from)
			to.CloseWithError(err)
		}()
		err := in(c, archive)
		archive.CloseWithError(err)
		return err
	})
}

// withFiles calls f with the agent's root, and confined by the agent's Landlock rules if that is asked
// for. It holds the root open no longer than the agent lives: stop is called at the end of the agent or of ctx and must
// make f return. Data goes through a pipe for that reason: a caller that does
// not read or write keeps nothing of the agent's.
func (l *Live) withFiles(ctx context.Context, confined bool, stop func(cause error), f func(copier) error) error {
	var c copier
	var ended func()
	err := l.do(func() (err error) {
		s := l.s
		c.hostID, c.uid, c.gid = s.run.Lease.HostID(), s.spec.User.UID, s.spec.User.GID
		if confined {
			c.confined, c.ruleset = true, s.entrance.ruleset
		}
		if c.root, err = rootOf(s.box.pid); err != nil {
			return err
		}
		// Still in the loop, so that the teardown cannot begin between the open and the
		// registration.
		ended = s.beginSession()
		return nil
	})
	if err != nil {
		return err
	}
	defer ended()
	defer c.root.Close()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-over:
		case <-l.ended:
			stop(errEnded())
		case <-ctx.Done():
			stop(ctx.Err())
		}
	}()
	return c.do(func() error { return f(c) })
}

// rootOf opens the root that a process has now, in its mount namespace: proc's link leads there.
// O_PATH needs no permission on it and suffices for openat2.
func rootOf(pid int) (*os.File, error) {
	root, err := os.OpenFile(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, copyFailed("/", err)
	}
	return root, nil
}

// in unpacks an archive in a folder.
func (c copier) in(name string, from io.Reader) error {
	// A relative path counts from the agent's root.
	name = path.Clean("/" + name)
	folder, err := beneath.Open(c.root, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return copyFailed(name, err)
	}
	defer folder.Close()
	return c.unpack(folder, name, from)
}

// unpack makes what an archive has in a folder, which is at name.
func (c copier) unpack(folder *os.File, name string, from io.Reader) error {
	archive, room := tar.NewReader(from), c.maxHoles()
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
		if err := c.take(folder, h, archive, &room); err != nil {
			return takeFailed(path.Join(name, h.Name), err)
		}
	}
}

// takeFailed is copyFailed for a part of an archive. The folder is there, so its caller must not
// take this for a folder that is not, and unpack into another one.
func takeFailed(name string, err error) error {
	var failed *agent.Error
	if err = copyFailed(name, err); errors.As(err, &failed) && failed.Kind == agent.KindNotFound {
		failed.Kind, failed.Hint = agent.KindConflict, "something of another kind is at that path inside, or was removed meanwhile"
	}
	return err
}

// take makes one thing of the archive. No part of its name may be a link: the
// agent could turn any folder into one while it is looked up. room is what the archive may still have of holes.
func (c copier) take(top *os.File, h *tar.Header, data io.Reader, room *int64) error {
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
	if err := c.onDisk(parent); err != nil {
		return err
	}
	base := path.Base(name)
	switch h.Typeflag {
	case tar.TypeDir:
		return c.takeFolder(parent, base, h)
	case tar.TypeReg:
		return replace(parent, base, func(temporary string) error { return writeFile(parent, temporary, h, data, room) })
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

// replace makes something under a temporary name and moves it to its own. A link, pipe
// or device that had that name before is never opened. The random name makes a collision
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
func writeFile(parent *os.File, name string, h *tar.Header, data io.Reader, room *int64) error {
	fd, err := unix.Openat(int(parent.Fd()), name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if err := sparse.Read(file, h, data, room); err != nil {
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
