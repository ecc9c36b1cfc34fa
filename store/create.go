package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
)

// prepareDir makes the state directory with mode 0700. A directory that others may
// write to is rejected: root would read a file that they put there. Its mode is not
// repaired, because the path may be a mistake such as /tmp.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if info.Mode().Perm()&0o022 == 0 && (owner == 0 || int(owner) == os.Geteuid()) {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: step,
		Message: fmt.Sprintf("%s can be written by others (owner %d, mode %04o)", dir, owner, info.Mode().Perm()),
		Hint:    "keep clove's state in a directory of its own, with owner root and mode 0700"}
}

// create makes the file with the newest schema, all or nothing: bbolt writes
// its first pages in place, so a crash halfway would leave a file that is
// neither empty nor valid. The caller holds the lock, so the temporary name
// can only have been left by a process that died here.
func (f format) create(path string) error {
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.build(temp); err != nil {
		os.Remove(temp)
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	// The directory may be as new as the file.
	dir := filepath.Dir(path)
	return errors.Join(atomicfile.Sync(dir), atomicfile.Sync(filepath.Dir(dir)))
}

// build makes a file with the newest schema. It goes through all migrations from the first
// one on, so that a new file and a migrated one cannot differ. There is no timeout for
// bbolt's lock: the caller's lock keeps every other clove away from the temporary name.
func (f format) build(path string) error {
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		return err
	}
	err = db.Update(f.migrate)
	return errors.Join(err, db.Close(), atomicfile.Sync(path))
}
