package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
)

// lookTime is how long a check with a caller's rights may take: a file system of the
// caller's own (fuse) can block it without end.
const lookTime = 10 * time.Second

// asUser runs look with the ids of the run's future owner, so that the kernel decides
// what is allowed. It has no supplementary groups: they are not known any more when
// cloved starts the run again. The thread ends with look. While look hangs, it keeps its
// slot, so a user can block only a few threads.
func (l admissionRules) asUser(c *request, look func() error) error {
	leave, err := l.looks.enter(c, c.peer.owner.UID)
	if err != nil {
		return err
	}
	seen := make(chan error, 1) // buffered: after the time limit there is no receiver
	go func() {
		defer leave()
		thread, err := nsthread.StartAs(nsthread.Identity{UID: c.peer.owner.UID, GID: c.peer.owner.GID})
		if err == nil {
			err = thread.Do(look)
			thread.Close()
		}
		seen <- err
	}()
	select {
	case err = <-seen:
		return err
	case <-time.After(lookTime):
		return fmt.Errorf("its file system did not answer within %s", lookTime)
	case <-c.Done():
		return c.Err()
	}
}

// shown checks that the calling thread's user can read all host paths of a spec, and
// search those that are directories.
func shown(files agent.Files) error {
	if files.Workspace != "" {
		if err := readable(files.Workspace, true); err != nil {
			return fmt.Errorf("cannot use the workspace %.256s: %w", files.Workspace, err)
		}
	}
	if files.GitDir != "" && files.GitDir != agent.NoGitDir {
		if err := readable(files.GitDir, true); err != nil {
			return fmt.Errorf("cannot use the git directory %.256s: %w", files.GitDir, err)
		}
	}
	for _, bind := range files.Binds {
		if err := readable(bind.Source, false); err != nil {
			return fmt.Errorf("cannot show %.256s: %w", bind.Source, err)
		}
	}
	return nil
}

// readable is the rule of package rootfs, applied before anything is stored. Nothing but
// a directory or regular file is opened: opening a FIFO or a device has effects.
func readable(path string, wantDir bool) error {
	// O_PATH opens nothing yet: the file's type is known before anything can have an
	// effect.
	handle, err := os.OpenFile(path, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer handle.Close()
	info, err := handle.Stat()
	switch {
	case err != nil:
		return err
	case wantDir && !info.IsDir():
		return errNotDirectory
	case !info.IsDir() && !info.Mode().IsRegular():
		return errNotPlain
	}
	// Opened through the handle and not by its path, which the user can give another file
	// by now. The kernel checks this thread's right to read again.
	name := fmt.Sprintf("/proc/self/fd/%d", handle.Fd())
	file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		// With the path that the user named: the one in /proc means nothing to them.
		return &fs.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	defer file.Close()
	if info.IsDir() {
		// The right to read a directory does not include the right to search it.
		_, err = os.Lstat(path + "/.")
	}
	return err
}

var (
	errNotDirectory = errors.New("it is not a directory")
	errNotPlain     = errors.New("it is neither a directory nor a regular file")
)
