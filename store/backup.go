package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
)

// backup copies the file as it was before a migration, to PATH.schemaN: the
// older clove that wrote it can use it again. A copy that is there already is
// of an upgrade that was cut short, and as good. No process writes meanwhile: the
// caller holds the lock.
func (d *database) backup(version int) error {
	path := fmt.Sprintf("%s.schema%d", d.path, version)
	if _, err := os.Lstat(path); version == 0 || err == nil {
		return nil // a new file has nothing to keep
	}
	source, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer source.Close()
	return atomicfile.Replace(path, 0o600, func(copied *os.File) error { _, err := io.Copy(copied, source); return err })
}

// Backup writes a consistent copy of the file to the path to, which must not exist.
// Other processes wait until it is written. A file in which Check finds problems is
// refused: its copy would be mistaken for a good one.
func (s *Store) Backup(to string) error { return s.copy(to, s.Check) }

// copy writes the file to the path to, if check finds nothing in it. The copy gets its name
// last: a file at that path is whole and on the disk, also after a crash.
func (d *database) copy(to string, check func() ([]string, error)) error {
	problems, err := check()
	if err != nil {
		return err
	}
	if len(problems) > 0 {
		return explain(d.path, fmt.Errorf("%w: %s", errDamaged, problems[0]))
	}
	// Only for the better message, before anything is written. The link below
	// decides.
	if _, err := os.Lstat(to); err == nil {
		return &agent.Error{Kind: agent.KindConflict, Step: "backup", Message: to + " is there already", Hint: "name a file that is not"}
	}
	temporary, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".new")
	if err != nil {
		return cannotBackUp(to, err)
	}
	defer os.Remove(temporary.Name()) // behind the link the file has its other name
	// Not with bbolt's CopyFile, which opens a path: CreateTemp made this file with mode
	// 0600, and the environment of every agent will be in it.
	err = d.view(func(tx *bbolt.Tx) error { _, err := tx.WriteTo(temporary); return err })
	// The content is on the disk before the name is: a power cut cannot leave a short copy
	// under the name that the user gave.
	err = errors.Join(err, temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Link(temporary.Name(), to) // never over another file
	}
	if err == nil {
		err = atomicfile.Sync(filepath.Dir(to))
	}
	return cannotBackUp(to, err)
}

// cannotBackUp blames the target, not the store: Check has just read all of the store.
func cannotBackUp(to string, err error) error {
	if err == nil {
		return nil
	}
	return &agent.Error{Kind: agent.KindOf(err), Step: "backup", Message: "cannot write " + to, Err: err, Hint: "name a file where there is space and you may write"}
}
