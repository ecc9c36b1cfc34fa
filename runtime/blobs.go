package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/beneath"
)

// FileSize returns the size of the regular file at path, in bytes. What the agent itself could not read is an
// error, and so is a link, a pipe or a device: none of them is opened.
func (l *Live) FileSize(ctx context.Context, inside string) (size int64, err error) {
	err = l.withFile(ctx, inside, func(_ context.Context, _ *os.File, bytes int64) error { size = bytes; return nil })
	return size, err
}

// ReadFile writes the regular file at path to to. It is an error if it has not exactly so many bytes when it is read.
func (l *Live) ReadFile(ctx context.Context, inside string, size int64, to io.Writer) error {
	return l.withFile(ctx, inside, func(ctx context.Context, file *os.File, _ int64) error {
		read, err := io.Copy(to, io.LimitReader(heeding{file, ctx.Err}, size+1))
		if err == nil && read != size {
			err = &agent.Error{Kind: agent.KindConflict, Step: "copy", Message: "the file changed while it was read", Hint: "ask again when it is written"}
		}
		return err
	})
}

// withFile calls use with an open file of the agent's and its size, on a thread that is the agent to the file
// systems, and is confined by the agent's Landlock rules.
func (l *Live) withFile(ctx context.Context, inside string, use func(ctx context.Context, file *os.File, size int64) error) error {
	inside = path.Clean("/" + inside)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return l.withFiles(ctx, true, func(cause error) { stop(cause) }, func(c copier) error {
		place, err := beneath.Open(c.root, inside, unix.O_PATH|unix.O_NOFOLLOW)
		if err != nil {
			return copyFailed(inside, err)
		}
		defer place.Close()
		var s unix.Stat_t
		if err := unix.Fstat(int(place.Fd()), &s); err != nil {
			return copyFailed(inside, err)
		}
		if s.Mode&unix.S_IFMT != unix.S_IFREG {
			return noFile(inside, s.Mode)
		}
		file, err := beneath.Reopen(place, os.O_RDONLY) // it checks the permissions
		if err != nil {
			return copyFailed(inside, withoutPath(err))
		}
		defer file.Close()
		if err := use(ctx, file, s.Size); err != nil {
			return copyFailed(inside, err)
		}
		return nil
	})
}

// withoutPath is an error without the path of the host by which a file was opened.
func withoutPath(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// noFile refuses what is no regular file.
func noFile(inside string, mode uint32) error {
	why := map[uint32]string{unix.S_IFDIR: "it is a folder", unix.S_IFLNK: "it is a symbolic link"}[mode&unix.S_IFMT]
	if why == "" {
		why = oddKinds[mode&unix.S_IFMT].Error()
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "copy", Message: "cannot copy " + inside + ": " + why, Hint: "name a regular file"}
}

// WriteFile makes a file at path, at which nothing may be, with the agent's rights and Landlock rules, and of no
// more than the agent's disk. The folders above are made. It appears as a whole, or not at all.
func (l *Live) WriteFile(ctx context.Context, inside string, from io.Reader) error {
	name, err := cleanPath(inside)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return l.withFiles(ctx, true, func(cause error) { stop(cause) }, func(c copier) error {
		parent, err := folderFor(c.root, path.Dir(name))
		if err == nil {
			defer parent.Close()
			err = c.onDisk(parent)
		}
		if err == nil {
			err = newFile(parent, path.Base(name), heeding{from, ctx.Err})
		}
		if errors.Is(err, unix.EEXIST) {
			return occupied()
		}
		if err != nil {
			return copyFailed(inside, err)
		}
		return nil
	})
}

// newFile makes a file under a temporary name and moves it to its own, unless something has that.
func newFile(parent *os.File, base string, from io.Reader) error {
	dir, temporary := int(parent.Fd()), ".clove-"+rand.Text()
	fd, err := unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), temporary)
	_, err = io.Copy(file, from)
	err = errors.Join(err, unix.Fchmod(fd, 0o644), file.Close())
	if err == nil {
		err = unix.Renameat2(dir, temporary, dir, base, unix.RENAME_NOREPLACE)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0) // the agent may have moved it
	}
	return err
}
