package cgroups

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// OpenBundle is Open for the cgroup of an OCI container, whose path the engine chose.
// Because the group will be killed as a whole, the caller must check with Only that it
// holds nothing but the container's first process. The form of the path proves nothing
// here: an engine may name any cgroup, so only a place below the cgroup mounts is required.
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

// isBelowMount rejects the root of the v2 tree, which holds every process. The root of a v1
// hierarchy has the form of a v2 cgroup and passes; Only finds the other processes in it.
func isBelowMount(path string) bool {
	return filepath.Clean(path) == path && strings.HasPrefix(path, mountRoot+"/") && path != mountUnified
}

// Only rejects a group that holds any process other than pid, because a kill of the group
// would kill it too, and a group without pid, because a kill would miss the container. A
// hierarchy that the container was not moved into has no processes and passes.
func (g *Group) Only(pid int) error {
	found, err := g.members()
	if err != nil {
		return fmt.Errorf("cannot read the processes of the cgroup: %w", err)
	}
	if !slices.Contains(found, pid) {
		return fmt.Errorf("the cgroup %s does not hold the container", g.dirs[0])
	}
	// 0 counts too: a process of another pid namespace would be killed as well.
	if len(found) > 1 {
		return fmt.Errorf("the cgroup %s holds %d processes besides the container's", g.dirs[0], len(found)-1)
	}
	return nil
}

// LeaveV1 moves this process to the root of every v1 hierarchy, and of the v2 tree beside
// them. So what freezes, limits or kills the cgroup of the process that started it does not
// affect it. On v2 such a process is started in its cgroup (PrepareSupervisors), and
// nothing is moved.
func (h *Host) LeaveV1() error {
	if h.mode == ModeV2 {
		return nil
	}
	// In a container the mount may show only the container's part of the tree. Its root is
	// then the container's own cgroup, and this process stays below the limits of the
	// container.
	for controller, t := range h.trees {
		if err := write(t.mount, "cgroup.procs", strconv.Itoa(0)); err != nil {
			return fmt.Errorf("cannot leave the cgroup of %q: %w", controller, err)
		}
	}
	return nil
}
