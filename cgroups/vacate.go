package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// leafV2 takes the processes that stand in the way at a container's root; the
// name is the one that Docker in Docker gave it.
const leafV2 = "init"

// vacateTries bounds the race against processes that fork while they are moved.
const vacateTries = 100

// delegate enables the wanted controllers below root. A container sees a cgroup
// of its own as the root, and its processes sit in it; but only the real root may
// hold processes and give controllers to children ("no internal processes" in
// cgroups(7)). So there they move one step down, with all their limits above them.
//
// They move before anything is enabled: a root with processes and only threaded
// controllers (cpu) takes neither domain controllers nor processes in a child.
func delegate(root string) error {
	if isRealRoot(root) {
		return enable(root)
	}
	for try := 1; ; try++ {
		if err := vacate(root); err != nil {
			return err
		}
		// A process that was forked meanwhile is in the way again.
		if err := enable(root); !errors.Is(err, unix.EBUSY) || try == vacateTries {
			return err
		}
	}
}

// vacate moves every process of dir into its leaf.
func vacate(dir string) error {
	pids, err := readPids(dir)
	if err != nil {
		return fmt.Errorf("cannot read the processes of %s: %w", dir, err)
	}
	if len(pids) == 0 {
		return nil
	}
	leaf := filepath.Join(dir, leafV2)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cannot make a place for the container's processes: %w", err)
	}
	for _, pid := range pids {
		err := write(leaf, "cgroup.procs", strconv.Itoa(pid))
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
			return fmt.Errorf("cannot move process %d out of %s: %w", pid, dir, err)
		}
	}
	return nil
}

// isRealRoot: every other cgroup has this file, cgroups(7).
func isRealRoot(dir string) bool { return !exists(dir, "cgroup.events") }
