// Package atomicfile replaces files atomically: a reader sees the old or the new content,
// also after a power cut. It refuses to write through a symbolic link.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace makes the file at path with the content that fill writes, completely or not at
// all, even across a power cut. A symbolic link at path is replaced, not followed. mode is
// subject to the umask, as for open(2); fill may change the file's mode and owner. A
// process that is killed leaves at most a file .clove-RANDOM beside it.
func Replace(path string, mode fs.FileMode, fill func(*os.File) error) error {
	folder := filepath.Dir(path)
	// In the same folder, because rename(2) does not cross file systems. With O_EXCL, a
	// link that another user has put there is not followed.
	temporary := filepath.Join(folder, ".clove-"+rand.Text())
	file, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	// The sync comes before the rename: otherwise a power cut may leave the new name with
	// empty content.
	err = errors.Join(fill(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return Sync(folder)
}

// Write is Replace with a text.
func Write(path string, mode fs.FileMode, text []byte) error {
	return Replace(path, mode, func(file *os.File) error { _, err := file.Write(text); return err })
}

// Sync is fsync(2) of the file or folder at path. For a folder it makes the names in it
// survive a power cut: a rename alone is in memory until the kernel writes the folder back.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
