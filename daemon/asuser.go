package daemon

import (
	"fmt"
	"os"
	"time"

	"clove.run/clove/internal/nsthread"
)

// lookTime is how long a look with a caller's rights may take: a file system
// of their own (fuse) can let it wait for ever.
const lookTime = 10 * time.Second

// asUser runs look as the owner of a run to come, so that the kernel itself
// says what they may do: without supplementary groups, which nobody knows any
// more when the run starts again by itself. The thread ends with it; one that
// hangs keeps its place, of which a user has few.
func (c *call) asUser(look func() error) error {
	leave, err := c.looks.enter(c, c.peer.owner.UID)
	if err != nil {
		return err
	}
	seen := make(chan error, 1)
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

// readable tells whether a directory can be listed and passed through. Empty
// is no directory at all.
func readable(dir string) error {
	if dir == "" {
		return nil
	}
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.IsDir() {
		err = errNotDirectory
	}
	if err == nil {
		_, err = os.Lstat(dir + "/.")
	}
	return err
}
