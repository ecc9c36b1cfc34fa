// Package atomicfile replaces files.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace makes the file at path what fill writes, all of it or nothing, even over
// a power cut. A link at path is replaced, not followed. mode is before the umask,
// as for open(2); fill may give the file another one, and another owner. Who is
// killed meanwhile leaves a file .clove-RANDOM beside it at most.
func Replace(path string, mode fs.FileMode, fill func(*os.File) error) error {
	folder := filepath.Dir(path)
	temporary := filepath.Join(folder, ".clove-"+rand.Text())
	file, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
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

// Sync is fsync(2) of the file or folder at path: that of a folder keeps the names
// in it over a power cut.
func Sync(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
