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

// leafV2 receives the processes of a container's root cgroup. Docker in Docker uses the same name.
const leafV2 = "init"

// vacateTries bounds the race against processes that fork during the move.
const vacateTries = 100

// delegate enables the wanted controllers below root. A container sees its own cgroup as
// the root, with its processes in it. Only the real root may have both processes and
// children with domain controllers ("no internal processes" in cgroups(7)), so here the
// processes are moved one level down. All their limits stay in force above them.
//
// The move comes before the enabling: a root with processes and only threaded controllers
// (cpu) enabled accepts neither domain controllers nor processes in a child.
func delegate(root string) error {
	if isRealRoot(root) {
		return enable(root)
	}
	for try := 1; ; try++ {
		if err := vacate(root); err != nil {
			return err
		}
		// EBUSY: a process was forked into root meanwhile.
		if err := enable(root); !errors.Is(err, unix.EBUSY) || try == vacateTries {
			return err
		}
	}
}

// vacate moves every process of dir into its leaf. Moving needs one write for each process:
// cgroup.procs takes one number at a time.
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

// isRealRoot: every cgroup except the root has this file, cgroups(7).
func isRealRoot(dir string) bool { return !exists(dir, "cgroup.events") }
