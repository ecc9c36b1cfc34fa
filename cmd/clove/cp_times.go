package main

import (
	"errors"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// madeFolder is a directory of a copy, and the time that it shall have. What is
// written into it changes that time, so it is set afterwards.
type madeFolder struct {
	name     string
	modified time.Time
}

// leaveFolders sets the times of those in which next, an archive's next name, does
// not lie, and returns the rest. folders lie in each other.
func leaveFolders(root *os.Root, folders []madeFolder, next string) ([]madeFolder, error) {
	for len(folders) > 0 {
		last := folders[len(folders)-1]
		if strings.HasPrefix(next, last.name+"/") {
			break
		}
		if err := setModified(root, last.name, last.modified); err != nil {
			return nil, err
		}
		folders = folders[:len(folders)-1]
	}
	return folders, nil
}

// setModified gives a file, a directory or a link itself a time. One that is to come
// is now: what an agent dates ahead would look newer than all that is made of it.
func setModified(root *os.Root, name string, modified time.Time) error {
	if now := time.Now(); modified.After(now) {
		modified = now
	}
	spec, err := unix.TimeToTimespec(modified)
	if err != nil {
		return err
	}
	parent, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	err = unix.UtimesNanoAt(int(parent.Fd()), path.Base(name), []unix.Timespec{spec, spec}, unix.AT_SYMLINK_NOFOLLOW)
	return errors.Join(err, parent.Close())
}
