package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// backup copies the file as it was before a migration, to PATH.schemaN: the
// older clove that wrote it can use it again. A copy that is there already is
// of an upgrade that did not come to its end, and as good. Nobody writes
// meanwhile: the lock is ours.
func (s *Store) backup(version int) error {
	path := fmt.Sprintf("%s.schema%d", s.path, version)
	if _, err := os.Lstat(path); version == 0 || err == nil {
		return nil // a new file has nothing to keep
	}
	temporary := path + ".new"
	if err := copyFile(s.path, temporary); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return fsync(filepath.Dir(path))
}

// copyFile makes a copy that is on the disk when it returns.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Sync(), target.Close())
}
