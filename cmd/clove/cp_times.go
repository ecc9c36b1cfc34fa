package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// madeFolder is a directory of a copy with the time and the mode that it gets in the end: writing
// into the directory changes the one and needs another.
type madeFolder struct {
	name     string
	modified time.Time
	mode     fs.FileMode
}

// leaveFolders sets the times of those directories that next, the archive's next name,
// is not in, and returns the others. folders are nested: an archive is in the order of
// a tree.
func leaveFolders(root *os.Root, folders []madeFolder, next string) ([]madeFolder, error) {
	for len(folders) > 0 {
		last := folders[len(folders)-1]
		if strings.HasPrefix(next, last.name+"/") {
			break
		}
		// Nothing in the archive can have taken its place yet, so this follows no link.
		if err := errors.Join(root.Chmod(last.name, last.mode), setModified(root, last.name, last.modified)); err != nil {
			return nil, err
		}
		folders = folders[:len(folders)-1]
	}
	return folders, nil
}

// setModified sets the time of a file, a directory or a link itself. A time in the
// future becomes now: a file that an agent dates ahead would stay newer than everything
// that is built from it, and make would rebuild that every time.
func setModified(root *os.Root, name string, modified time.Time) error {
	if now := time.Now(); modified.After(now) {
		modified = now
	}
	spec, err := unix.TimeToTimespec(modified)
	if err != nil {
		return err
	}
	// os.Root has no call for the time of a link, so the parent is opened beneath the
	// root.
	parent, err := root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	err = unix.UtimesNanoAt(int(parent.Fd()), path.Base(name), []unix.Timespec{spec, spec}, unix.AT_SYMLINK_NOFOLLOW)
	return errors.Join(err, parent.Close())
}
