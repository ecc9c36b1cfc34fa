package cgroups

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Below is the cgroup of a part of an agent's processes, one level below the agent's own and
// with no limit of its own, so that the part can be ended as a whole.
type Below struct {
	*Group
	// Join is the cgroup as libcontainer's Process.SubCgroupPaths names it.
	Join map[string]string
}

// MakeBelow makes the cgroup of this name below the agent's. It is in one hierarchy, which
// counts nothing: the v2 tree, where no controller is enabled for it, so that the agent's own
// cgroup may hold processes beside it (cgroups(7), "no internal processes"), or v1's freezer.
// v1's memory and pids count kills and refused forks in the process's own cgroup only, and the
// agent's record would miss those.
func (g *Group) MakeBelow(name string) (*Below, error) {
	tree := "freezer"
	if len(g.paths) == 1 {
		tree = unified
	}
	dir, found := g.paths[tree]
	if !found {
		return nil, ErrNoFreezer
	}
	dir = filepath.Join(dir, name)
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("cannot make a cgroup below the agent's: %w", err)
	}
	return &Below{Group: group(map[string]string{tree: dir}), Join: map[string]string{tree: name}}, nil
}

// RemoveEmpty reports whether the cgroup is gone. One with processes stays, and so does, for a
// moment, one whose last process has just ended: Remove waits for those.
func (b *Below) RemoveEmpty() bool {
	for _, dir := range b.dirs {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			return false
		}
	}
	return true
}
