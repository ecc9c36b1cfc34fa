package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// CopyOut writes the file, folder or symbolic link at path as a tar archive
// whose names begin with path's last element. It reads what the agent could,
// and no link leads it out of the agent's root. What a folder holds besides
// files, folders and links (pipes, sockets, devices), and what the agent may not
// read, is left out; the error that names it comes after everything else.
func (l *Live) CopyOut(ctx context.Context, path string, to io.Writer) error {
	from, archive := io.Pipe()
	copied := make(chan error, 1)
	begun := false
	err := l.withFiles(ctx, func(cause error) { archive.CloseWithError(cause); from.CloseWithError(cause) }, func(c copier) error {
		begun = true
		go func() {
			_, err := io.Copy(to, from)
			from.CloseWithError(err) // ends the archive if its reader is gone
			copied <- err
		}()
		err := c.out(path, archive)
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
	archive, to := io.Pipe()
	return l.withFiles(ctx, func(cause error) { archive.CloseWithError(cause); to.CloseWithError(cause) }, func(c copier) error {
		go func() {
			// It may outlast the copy, in a read from the caller's side; its next write
			// fails then.
			_, err := io.Copy(to, from)
			to.CloseWithError(err)
		}()
		err := c.in(path, archive)
		archive.CloseWithError(err)
		return err
	})
}

// copier does one copy, on a thread with the agent's ids.
type copier struct {
	root     *os.File
	hostID   uint32 // of id 0 inside
	uid, gid uint32 // the agent's, inside
}

// withFiles calls f with the agent's root, which it holds open no longer than
// the agent lives: stop is called at the end of the agent or of ctx and must
// make f return. Data goes through a pipe for that reason: a caller that does
// not read or write keeps nothing of the agent's.
func (l *Live) withFiles(ctx context.Context, stop func(cause error), f func(copier) error) error {
	var c copier
	var ended func()
	err := l.do(func() (err error) {
		s := l.s
		c.hostID, c.uid, c.gid = s.run.Lease.HostID(), s.spec.User.UID, s.spec.User.GID
		// proc's link leads to the root that the agent has now, in its mount namespace.
		// O_PATH needs no permission on it and suffices for openat2.
		c.root, err = os.OpenFile(fmt.Sprintf("/proc/%d/root", s.box.pid), unix.O_PATH|syscall.O_DIRECTORY, 0)
		if err != nil {
			return copyFailed("/", err)
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
	// A thread that changed its ids must end with the copy.
	thread, err := nsthread.Start(0)
	if err != nil {
		return err
	}
	defer thread.Close()
	return thread.Do(func() error {
		if err := becomeAgent(c.hostID+c.uid, c.hostID+c.gid); err != nil {
			return err
		}
		return f(c)
	})
}
