package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// templateKept is how long an unused template is kept. Making it again costs one start a
// tenth of a second.
const templateKept = 30 * 24 * time.Hour

// scratchPattern matches the directories in which templates are made.
const scratchPattern = ".new-*"

// scratch is a directory in which one process makes a template. The lock on it proves that
// the maker is alive, as the lock of a run directory does for a supervisor.
type scratch struct {
	path string
	lock *os.File
}

var errMakerAlive = errors.New("the maker is alive")

// newScratch makes and locks a directory in dir, and makes dir if needed. No other process
// sees the directory between its creation and its lock.
func newScratch(dir string) (scratch, error) {
	var s scratch
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return s, err
	}
	err := descriptor.Exclusively(dir, func() (err error) {
		if s.path, err = os.MkdirTemp(dir, scratchPattern); err != nil {
			return err
		}
		s.lock, err = lockScratch(s.path)
		return err
	})
	return s, err
}

// claimScratch takes over the directory of a dead maker. It returns errMakerAlive if the
// maker lives, and fs.ErrNotExist if it has finished.
func claimScratch(path string) (scratch, error) {
	s := scratch{path: path}
	err := descriptor.Exclusively(filepath.Dir(path), func() (err error) {
		s.lock, err = lockScratch(path)
		return err
	})
	return s, err
}

// remove deletes the directory while it is locked, so that no other process claims it meanwhile.
func (s scratch) remove() error {
	err := os.RemoveAll(s.path)
	s.lock.Close()
	return err
}

func lockScratch(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errMakerAlive
		}
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	// The maker may have removed the directory between the open and the lock.
	var stat unix.Stat_t
	if err := unix.Fstat(int(lock.Fd()), &stat); err != nil || stat.Nlink == 0 {
		lock.Close()
		return nil, errors.Join(err, fs.ErrNotExist)
	}
	return lock, nil
}

// AbandonedTemplates returns the names of what killed makers left among the templates below
// stateDir.
func AbandonedTemplates(stateDir string) ([]string, error) {
	var names []string
	err := eachAbandoned(templatesDir(stateDir), func(s scratch) error {
		names = append(names, filepath.Base(s.path))
		return s.lock.Close()
	})
	return names, err
}

// SweepAbandoned removes what killed makers left among the templates below stateDir, and
// returns the names.
func SweepAbandoned(stateDir string) (names []string, err error) {
	err = eachAbandoned(templatesDir(stateDir), func(s scratch) error {
		names = append(names, filepath.Base(s.path))
		return s.remove()
	})
	return names, err
}

// SweepTemplates removes what killed makers left, and templates that were not used for
// templateKept before now. It returns the names of both.
func SweepTemplates(stateDir string, now time.Time) (abandoned, unused []string, err error) {
	abandoned, err = SweepAbandoned(stateDir)
	failures := []error{err}
	images, _ := filepath.Glob(filepath.Join(templatesDir(stateDir), "*-*-*.img")) // fails on a bad pattern only
	for _, path := range images {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < templateKept {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failures = append(failures, fmt.Errorf("cannot remove a template: %w", err))
			continue
		}
		unused = append(unused, filepath.Base(path))
	}
	return abandoned, unused, errors.Join(failures...)
}

// eachAbandoned calls use with every scratch directory of a dead maker, locked.
func eachAbandoned(dir string, use func(scratch) error) error {
	paths, _ := filepath.Glob(filepath.Join(dir, scratchPattern)) // fails on a bad pattern only
	var failures []error
	for _, path := range paths {
		s, err := claimScratch(path)
		switch {
		case errors.Is(err, errMakerAlive), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR): // the last is not clove's
			continue
		case err == nil:
			err = use(s)
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("cannot clean up after the maker of a template: %w", err))
		}
	}
	return errors.Join(failures...)
}
