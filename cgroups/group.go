package cgroups

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Group is one agent's cgroups. It is a value without mutable state: any number of
// goroutines and processes may use Groups of the same agent. paths is as in Placement: by
// controller, so several keys may lead to one directory.
type Group struct {
	paths map[string]string
	dirs  []string // the distinct directories of paths, sorted
}

// Open returns the group at paths, in the form of Placement.Paths. The directories need not
// exist: an absent one counts as empty.
func Open(paths map[string]string) (*Group, error) {
	if len(paths) == 0 {
		return nil, errors.New("cannot open a cgroup: no paths are known")
	}
	for controller, path := range paths {
		if !isAgentDir(path) {
			return nil, fmt.Errorf("cannot open the cgroup of %q: %q is not an agent's directory", controller, path)
		}
	}
	return group(paths), nil
}

func group(paths map[string]string) *Group {
	dirs := slices.Sorted(maps.Values(paths))
	return &Group{paths: maps.Clone(paths), dirs: slices.Compact(dirs)}
}

// Pids returns all processes of the group, sub-cgroups included, sorted. Zombies are not
// included: the kernel does not list them.
func (g *Group) Pids() ([]int, error) {
	pids, err := g.members()
	// 0 is a process that this pid namespace cannot name.
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == 0 }), err
}

// members returns the union over all hierarchies: a process that died while it was being
// moved is in some of them only.
func (g *Group) members() ([]int, error) {
	var all []int
	err := g.walk(func(dir string) error {
		pids, err := readPids(dir)
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil // a threaded sub-cgroup: its processes are listed by its domain
		}
		all = append(all, pids...)
		return err
	})
	slices.Sort(all)
	return slices.Compact(all), err
}

// walk calls visit for every directory of the group, parents first. A directory that
// vanishes meanwhile is skipped.
func (g *Group) walk(visit func(dir string) error) error {
	for _, dir := range g.dirs {
		if err := walkDir(dir, visit); err != nil {
			return err
		}
	}
	return nil
}

// walkDir skips a directory that is gone when it is visited. One that goes between the
// visit and the listing has no children for subgroups.
func walkDir(dir string, visit func(string) error) error {
	if err := visit(dir); err != nil {
		if isGone(err) {
			return nil
		}
		return err
	}
	children, err := subgroups(dir)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := walkDir(child, visit); err != nil {
			return err
		}
	}
	return nil
}

// subgroups lists the directories in dir. Mostly there are none, which kernfs shows in the
// link count (2, plus one for each subdirectory). That costs a twentieth of reading the
// directory with all its control files.
func subgroups(dir string) ([]string, error) {
	var about unix.Stat_t
	// A failed stat is left to ReadDir, whose error is checked.
	if unix.Stat(dir, &about) == nil && about.Nlink == 2 {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !isGone(err) {
		return nil, fmt.Errorf("cannot list sub-cgroups: %w", err)
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() {
			found = append(found, filepath.Join(dir, entry.Name()))
		}
	}
	return found, nil
}

// patience bounds Kill and Remove for a caller whose context has no deadline: a process in
// uninterruptible sleep may never end.
const patience = 30 * time.Second

// bounded adds patience to a context without a deadline. A deadline of the caller counts
// alone, even where it is longer.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, patience)
}

// Remove removes the group's directories and all below them. An absent one is no error. A
// directory with living processes cannot be removed, which is an error when ctx ends: call
// Kill first. A tree goes with the last agent in it; the parent of all agents stays.
func (g *Group) Remove(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var failures []error
	for _, dir := range g.dirs {
		if err := removeBelow(ctx, dir); err != nil {
			failures = append(failures, err)
			continue
		}
		removeTrees(dir)
	}
	return errors.Join(failures...)
}

// removeBelow removes dir, children first. The kernel takes a process out of its cgroup a
// moment after its end is visible and sends no event, so EBUSY is retried with a growing
// pause.
func removeBelow(ctx context.Context, dir string) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		// Tried before the children are listed: an agent rarely makes sub-cgroups. Only an
		// attempt shows whether the kernel has released the last process.
		err := unix.Rmdir(dir)
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.EBUSY && err != unix.ENOTEMPTY && err != unix.EINTR {
			return fmt.Errorf("cannot remove cgroup %s: %w", dir, err)
		}
		children, lerr := subgroups(dir)
		if lerr != nil {
			return lerr
		}
		for _, child := range children {
			if cerr := removeBelow(ctx, child); cerr != nil {
				return cerr
			}
		}
		if len(children) > 0 && ctx.Err() == nil {
			continue // a child kept it from being removed
		}
		if !pauseFor(ctx, pause) {
			pids, _ := readPids(dir) // only for the message
			return fmt.Errorf("cannot remove cgroup %s, which holds %s: %w", dir, describe(pids), err)
		}
	}
}

// pauseFor sleeps where the kernel has no event to wait for; false: ctx ended.
func pauseFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
