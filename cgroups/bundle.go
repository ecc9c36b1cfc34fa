package cgroups

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// OpenBundle is Open for the cgroup of a bundle's container, whose place the
// engine chose. Whoever kills it must kill nobody else, so it has to hold the
// container's first process and no other when it is opened first (Only).
func OpenBundle(paths map[string]string) (*Group, error) {
	if len(paths) == 0 {
		return nil, errors.New("cannot open a cgroup: no paths are known")
	}
	for controller, path := range paths {
		if !isBelowMount(path) {
			return nil, fmt.Errorf("cannot open the cgroup of %q: %q is not one below %s", controller, path, mountRoot)
		}
	}
	return group(paths), nil
}

// isBelowMount refuses the tree's root itself, which is everybody's. A v1
// hierarchy's root has the form of a v2 cgroup; Only finds the others in it.
func isBelowMount(path string) bool {
	return filepath.Clean(path) == path && strings.HasPrefix(path, mountRoot+"/") && path != mountUnified
}

// Only refuses a group that holds another process than pid, or not even that
// one: to kill it would be to kill a stranger, or nobody. A hierarchy that the
// container was not moved into has nothing to kill.
func (g *Group) Only(pid int) error {
	found, err := g.members()
	if err != nil {
		return fmt.Errorf("cannot read the processes of the cgroup: %w", err)
	}
	if !slices.Contains(found, pid) {
		return fmt.Errorf("the cgroup %s does not hold the container", g.dirs[0])
	}
	if len(found) > 1 {
		return fmt.Errorf("the cgroup %s holds %d processes besides the container's", g.dirs[0], len(found)-1)
	}
	return nil
}

// LeaveV1 moves this process to the root of every v1 hierarchy, and of the v2
// tree beside them, out of the cgroup of whoever started it: what freezes, limits
// or kills that one does not reach it then. On v2 a process is begun where it is
// to be (PrepareSupervisors), and nothing is moved.
func (h *Host) LeaveV1() error {
	if h.mode == ModeV2 {
		return nil
	}
	for controller, t := range h.trees {
		if err := write(t.mount, "cgroup.procs", strconv.Itoa(0)); err != nil {
			return fmt.Errorf("cannot leave the cgroup of %q: %w", controller, err)
		}
	}
	return nil
}
