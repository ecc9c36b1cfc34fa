package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"clove.run/clove/kernel/blobs"
	"clove.run/clove/store"
)

// File is kernel.db on the disk, for use while no cloved has it open.
type File string

// fileTimeout is short: cloved keeps the file for as long as it lives.
const fileTimeout = 100 * time.Millisecond

// use opens the file for one use. Where it does not exist no cloved has been, and there is nothing
// to use.
func (f File) use(use func(*store.Kernel) error) error {
	if _, err := os.Lstat(string(f)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	k, err := store.OpenKernel(string(f), fileTimeout, Tables()...)
	if err != nil {
		return err
	}
	return errors.Join(use(k), k.Close())
}

// blobs is the directory of blobs of the file.
func (f File) blobs() blobs.Dir { return BlobDir(string(f)) }

// BlobDir is the directory of blobs of a kernel.db.
func BlobDir(file string) blobs.Dir { return blobs.Dir(filepath.Join(filepath.Dir(file), "blobs")) }

// BackupKernel writes a copy to a file that does not exist yet, as Kernel.Backup. The error is of KindBusy while
// cloved lives: then cloved is to be asked.
func (f File) BackupKernel(to string) error {
	return f.use(func(k *store.Kernel) error { return f.blobs().Backup(to, k.Read, k.Backup) })
}

// CheckKernel returns what is wrong with the file, as sentences. The error is of KindBusy while
// cloved lives: then cloved is to be asked.
func (f File) CheckKernel() (problems []string, err error) {
	err = f.use(func(k *store.Kernel) error {
		if problems, err = k.Check(); err != nil {
			return err
		}
		files, err := f.blobs().Check(k.Read, references, func(string) bool { return false })
		problems = append(problems, files...)
		return err
	})
	return problems, err
}

// SweepKernel removes files of blobs that a kill has left, and returns their names. The error is of KindBusy while
// cloved lives, which does that itself.
func (f File) SweepKernel() (removed []string, err error) {
	err = f.use(func(k *store.Kernel) error { removed, err = f.blobs().Sweep(k.Read, k.Update); return err })
	return removed, err
}
