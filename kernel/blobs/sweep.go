package blobs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/store"
)

// Committed says that a transaction has ended: it may have removed a reference.
func (b *Blobs) Committed() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// startSweeps begins to remove what nothing refers to, and what has expired.
func (b *Blobs) startSweeps() {
	stop, expired := make(chan struct{}), time.NewTicker(expiry)
	var ended sync.WaitGroup
	if b.Dir != "" {
		_ = b.Sweep() // tried again at the next tick
		ended.Go(func() {
			for work := b.removeIdle; ; work = b.removeIdle {
				select {
				case <-stop:
					return
				case <-expired.C:
					work = b.Sweep
				case <-b.wake:
				}
				for work() != nil { // it is tried again, with all that the failure may have left
					select {
					case <-stop:
						return
					case <-time.After(sweepTime):
					}
					work = b.Sweep
				}
				select {
				case <-stop:
					return
				case <-time.After(sweepTime):
				}
			}
		})
	}
	b.end = func() { expired.Stop(); close(stop); ended.Wait() }
}

// Sweep removes uploads that have expired, blobs to which nothing refers, and files that are neither's.
func (b *Blobs) Sweep() error {
	return cmp.Or(b.removeExpired(), b.removeIdle(), b.removeFiles())
}

// removeIdle removes blobs to which nothing refers: first the row, then the file.
func (b *Blobs) removeIdle() error {
	b.sweeps.Lock()
	defer b.sweeps.Unlock()
	return removeIdle(b.Dir, b.engine.Read, func(decide func(*store.KernelTx) error) error { return b.engine.Update("blob", decide) })
}

// transact is a transaction of a store.
type transact func(func(*store.KernelTx) error) error

func removeIdle(dir Dir, read, update transact) error {
	var gone []*blob.Row
	err := read(func(tx *store.KernelTx) (err error) { gone, err = blob.Idle(tx); return err })
	if err != nil || len(gone) == 0 {
		return err
	}
	var removed []*blob.Row
	err = update(func(tx *store.KernelTx) error {
		removed = nil
		for _, row := range gone {
			is, err := blob.Remove(tx, row)
			if err != nil {
				return err
			}
			if is {
				removed = append(removed, row)
			}
		}
		return nil
	})
	// gofail: var blobForgotten string
	// if err == nil { err = failpoint(blobForgotten, "") }

	for _, row := range removed {
		if err == nil {
			err = dir.remove(row.File)
		}
	}
	return err
}

// Sweep removes, while nothing else uses the store, blobs to which nothing refers, and files that are none's. It
// returns the names of those.
func (d Dir) Sweep(read, update transact) (removed []string, err error) {
	if err := removeIdle(d, read, update); err != nil {
		return nil, err
	}
	return d.tidy(read, func(string) bool { return false })
}

// removeExpired removes uploads of which the time is over. One that a call works on stays for now.
func (b *Blobs) removeExpired() error {
	var over []*blob.Upload
	err := b.engine.Read(func(tx *store.KernelTx) error {
		all, err := blob.Uploads.Below(tx, "")
		over = slices.DeleteFunc(all, func(u *blob.Upload) bool { return b.engine.Now().Before(u.Expires) })
		return err
	})
	for _, u := range over {
		leave, used := b.enter(u.ID)
		if err != nil || used != nil {
			continue
		}
		err = b.engine.Update("blob", func(tx *store.KernelTx) error { return forget(tx, u) })
		if err == nil {
			err = b.Dir.remove(u.ID + partSuffix)
		}
		leave()
	}
	return err
}

// removeFiles removes files that neither an upload nor a blob names.
func (b *Blobs) removeFiles() error {
	b.sweeps.Lock()
	defer b.sweeps.Unlock()
	_, err := b.Dir.tidy(b.engine.Read, b.used)
	return err
}

// used reports whether a call works on the file of an upload.
func (b *Blobs) used(upload string) bool {
	_, used := b.inUse.Load(upload)
	return used
}

// leftovers are files that no row names, and on which no call works: those to remove, and those of uploads whose
// end was cut short behind their renaming. First the files are read, then what calls work on, and last the rows: a
// row of an upload is there before its file, and one of a blob before its call has ended.
func leftovers(dir Dir, read transact, used func(upload string) bool) (left, half []string, err error) {
	names, err := dir.names()
	names = slices.DeleteFunc(names, func(name string) bool { return used(uploadOf(name)) })
	if err != nil || len(names) == 0 {
		return nil, nil, err
	}
	known, open := map[string]bool{}, map[string]bool{}
	err = read(func(tx *store.KernelTx) error {
		rows, err := blob.Rows.Below(tx, "")
		for _, r := range rows {
			known[r.File] = true
		}
		uploads, uerr := blob.Uploads.Below(tx, "")
		for _, u := range uploads {
			open[u.ID] = u.SHA256 == ""
		}
		return cmp.Or(err, uerr)
	})
	for _, name := range names {
		upload := uploadOf(name)
		switch {
		case known[name], open[upload] && name == upload+partSuffix:
		case open[upload]:
			half = append(half, name)
		default:
			left = append(left, name)
		}
	}
	return left, half, err
}

// tidy removes files that are none's, and returns their names. Uploads whose end was cut short go on.
func (d Dir) tidy(read transact, used func(upload string) bool) (removed []string, err error) {
	left, half, err := leftovers(d, read, used)
	if err != nil {
		return nil, err
	}
	for _, name := range half {
		err = cmp.Or(err, os.Rename(d.at(name), d.part(uploadOf(name))))
	}
	for _, name := range left {
		if gone := d.remove(name); gone == nil {
			removed = append(removed, name)
		} else {
			err = cmp.Or(err, gone)
		}
	}
	return removed, err
}

// Check returns what is wrong with the references and the files, in words.
func (b *Blobs) Check(references func(*store.KernelTx) ([]string, error)) ([]string, error) {
	b.sweeps.Lock()
	defer b.sweeps.Unlock()
	return b.Dir.Check(b.engine.Read, references, b.used)
}

// Check is Blobs.Check for any store. used says of an upload that a call works on it.
func (d Dir) Check(read transact, references func(*store.KernelTx) ([]string, error), used func(upload string) bool) (problems []string, err error) {
	err = read(func(tx *store.KernelTx) (err error) { problems, err = references(tx); return err })
	if err != nil {
		return nil, err
	}
	left, _, err := leftovers(d, read, used)
	for _, name := range left {
		problems = append(problems, fmt.Sprintf("blobs: the file %q is of no blob: cloved removes it", name))
	}
	if err != nil {
		return problems, err
	}
	return problems, read(func(tx *store.KernelTx) error {
		rows, err := blob.Rows.Below(tx, "")
		for _, r := range rows {
			info, serr := os.Lstat(d.at(r.File))
			switch {
			case errors.Is(serr, fs.ErrNotExist):
				problems = append(problems, fmt.Sprintf("blob %s of user %d: its file is not there", r.SHA256, r.Owner))
			case serr != nil:
				return serr
			case !info.Mode().IsRegular() || info.Size() != r.Bytes:
				problems = append(problems, fmt.Sprintf("blob %s of user %d: its file has another size", r.SHA256, r.Owner))
			}
		}
		return err
	})
}

// Backup copies the store to a file by copyStore, and the files of the blobs that the copy has to the folder beside it, with
// BackupSuffix. Meanwhile none is removed.
func (b *Blobs) Backup(file string, copyStore func(to string) error) error {
	b.sweeps.Lock()
	defer b.sweeps.Unlock()
	return b.Dir.Backup(file, b.engine.Read, copyStore)
}

// BackupSuffix follows the name of a copy of the store in that of the folder with its blobs.
const BackupSuffix = ".blobs"

// Backup is Blobs.Backup while nothing else uses the store. Where there are no blobs it makes no folder.
func (d Dir) Backup(file string, read transact, copyStore func(to string) error) error {
	folder := Dir(file + BackupSuffix)
	if _, err := os.Lstat(string(folder)); err == nil {
		return &agent.Error{Kind: agent.KindConflict, Step: "backup", Message: string(folder) + " is there already", Hint: "name a file that is not"}
	}
	if err := copyStore(file); err != nil {
		return err
	}
	if err := d.copyAll(folder, read); err != nil {
		return errors.Join(agent.Failed("backup", err), os.Remove(file), os.RemoveAll(string(folder)))
	}
	return nil
}

// copyAll copies the files of all blobs. What is not there, which Check reports, is left out.
func (d Dir) copyAll(to Dir, read transact) error {
	var rows []*blob.Row
	err := read(func(tx *store.KernelTx) (err error) { rows, err = blob.Rows.Below(tx, ""); return err })
	if err != nil || len(rows) == 0 {
		return err
	}
	if err := os.Mkdir(string(to), 0o700); err != nil {
		return err
	}
	for _, r := range rows {
		if err := copyFile(d.at(r.File), to.at(r.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return atomicfile.Sync(filepath.Dir(string(to)))
}

// copyFile copies a file, which is then on the disk.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	return atomicfile.Replace(to, 0o600, func(copied *os.File) error { _, err := io.Copy(copied, source); return err })
}
