package runtime

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/descriptor"
)

// Locks are taken in this order: the state directory's, the store's, that of the parent of
// the run directories. Each is held for moments, and waited for. A run's own lock and its
// sign are held for the life of the run, but they are only tried and never waited for, so
// they may be taken anywhere in this order.

// exitFile, in a run directory, is what clove-init notes of the end.
const exitFile = "exit"

// runDirectory is /run/clove/ID: what a live run has on the host besides its cgroup. The
// lock on its lock file is the supervisor's sign of life: the kernel takes it away however
// the supervisor ends. Decision 6 (docs/decisions) says why a lock and not a pid.
type runDirectory struct {
	path     string
	lock     *os.File
	sign     *os.File // in the state directory: the same sign, which outlives a removal of the run directory
	exit     *os.File // clove-init writes its end here; it outlives clove
	children *links   // to the supervisors of its children; nil: it may have none
	made     bool     // by a claim: the run had none
}

// claimPatience is how long a start waits for the process that still has the run's
// directory: the supervisor of its last start, which has stored the record already, or
// a clove that cleans up.
const claimPatience = 10 * time.Second

// newRunDirectory makes the directory and locks it. One that is there already
// belongs to a living supervisor, or to one that died before the run was stored: then
// this start takes it over.
func newRunDirectory(paths Paths, id agent.ID) (*runDirectory, error) {
	// Polled: flock(2) has no wait with a limit, and the holder may be a supervisor that
	// lives for hours.
	for deadline := time.Now().Add(claimPatience); ; time.Sleep(5 * time.Millisecond) {
		d, err := makeRunDirectory(paths, id)
		if !errors.Is(err, fs.ErrExist) || time.Now().After(deadline) {
			return d, err
		}
	}
}

// enter takes the run's sign of life. It returns errAlive if another process has it,
// and refuses if live runs use another run directory.
func enter(paths Paths, id agent.ID) (d *runDirectory, err error) {
	d = &runDirectory{path: paths.runDirectory(id)}
	err = descriptor.Exclusively(paths.State, func() (err error) {
		if err = paths.bind(); err == nil {
			d.sign, err = paths.signs().give(signOf(id))
		}
		return err
	})
	return d, err
}

// makeRunDirectory is one attempt; fs.ErrExist when there is one.
func makeRunDirectory(paths Paths, id agent.ID) (*runDirectory, error) {
	d, err := enter(paths, id)
	if errors.Is(err, errAlive) {
		return nil, &os.PathError{Op: "mkdir", Path: d.path, Err: fs.ErrExist}
	}
	if err != nil {
		return nil, err
	}
	// Exclusively, because a directory that is made and not yet locked looks like a dead run's.
	err = descriptor.Exclusively(paths.Run, func() (err error) {
		err = os.Mkdir(d.path, runMode)
		if errors.Is(err, fs.ErrExist) {
			err = replaceDead(d.path)
		}
		if err != nil {
			return err
		}
		d.lock, err = lockIn(d.path)
		return err
	})
	if err != nil {
		takeBack(d.sign)
		return nil, err
	}
	// Opened by clove and inherited by clove-init, which has no rights on the host and no
	// path to this file.
	d.exit, err = os.OpenFile(filepath.Join(d.path, exitFile), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

// replaceDead empties the run directory of a supervisor that died. The error
// is fs.ErrExist when it lives.
func replaceDead(path string) error {
	lock, err := lockIn(path)
	if errors.Is(err, errAlive) {
		return &os.PathError{Op: "mkdir", Path: path, Err: fs.ErrExist}
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	// The note about processes that hang would go with the directory, and they still use
	// the run's cgroup and layer.
	if err := errStuck(stuckIn(path)); err != nil {
		return err
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.Mkdir(path, runMode)
}

// claim takes the run directory of a run without a supervisor, and makes it if there is
// none: while it is held the run cannot be started again. It returns errAlive if another
// process has it. release or remove gives it up.
func claim(paths Paths, id agent.ID) (*runDirectory, error) {
	d, err := enter(paths, id)
	if err != nil {
		return nil, err
	}
	err = descriptor.Exclusively(paths.Run, func() (err error) {
		switch err := os.Mkdir(d.path, runMode); {
		case err == nil:
			d.made = true
		case !errors.Is(err, fs.ErrExist):
			return err
		}
		d.lock, err = lockIn(d.path)
		return err
	})
	if err != nil {
		takeBack(d.sign)
		return nil, err
	}
	return d, nil
}

// release gives a claim up and leaves things as they were.
func (d *runDirectory) release() {
	if d.made {
		_ = d.remove() // gc finds it
		return
	}
	d.letGo()
}

// letGo ends the signs of life, and leaves the directory to the next clove.
func (d *runDirectory) letGo() {
	if d.exit != nil {
		d.exit.Close()
	}
	d.endChildren()
	_ = unlock(d.lock)
	takeBack(d.sign)
}

// remove deletes the directory, then gives up the lock. It excludes
// others meanwhile: one that made a new lock file between the removal of the old one
// and that of the directory would keep the directory from being removed.
func (d *runDirectory) remove() error {
	err := descriptor.Exclusively(filepath.Dir(d.path), func() error { return os.RemoveAll(d.path) })
	d.letGo()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// noteStuck writes the note beside the lock, where the next start of this run and `clove
// check` look for it.
func (d *runDirectory) noteStuck(note stuckNote) error {
	text, err := json.Marshal(note)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.path, stuckFile), text, 0o600)
}

// recordFile holds the record of a run that could not be torn down or stored:
// the next clove that cleans up stores this one.
const recordFile = "record"
