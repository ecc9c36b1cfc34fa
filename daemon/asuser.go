package daemon

import (
	"os"

	"clove.run/clove/internal/nsthread"
)

// asUser runs look with the ids of the caller, so that the kernel itself says
// what the caller may do. The thread ends with it: its ids cannot be taken back.
func asUser(c caller, look func() error) error {
	thread, err := nsthread.StartAs(c.identity())
	if err != nil {
		return err
	}
	defer thread.Close()
	return thread.Do(look)
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
