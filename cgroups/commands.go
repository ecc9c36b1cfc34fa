package cgroups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// commandsPrefix and a user's id are the name of the directory beside the agents in which that
// user's commands run. It has the bounds of all of them together; below it each run has a
// directory of its own while one of its commands runs.
const commandsPrefix = "commands-"

var commandsPattern = regexp.MustCompile(`^` + commandsPrefix + `[0-9]+$`)

// Commands are the cgroups of one command that a run has the host execute. While they are
// open a lock on the directory shows that their maker lives.
type Commands struct {
	*Group
	lock *os.File
}

// commandTries bounds the race against a process that removes an empty directory.
const commandTries = 100

// MakeCommands makes the cgroups for a command of the run of this name (namePattern), and sets
// the bounds of all commands of the user: memory without swap, in bytes, and processes. It
// waits for the end of another command of the run. Prepare has been called.
func (h *Host) MakeCommands(uid uint32, name string, memoryBytes, pids int64) (*Commands, error) {
	for try := 1; ; try++ {
		c, err := h.makeCommands(commandsPrefix+strconv.FormatUint(uint64(uid), 10), name, memoryBytes, pids)
		if err == nil || !isGone(err) || try == commandTries {
			return c, err
		}
	}
}

func (h *Host) makeCommands(user, name string, memoryBytes, pids int64) (*Commands, error) {
	paths := h.commandPaths(user, name)
	for _, dir := range group(paths).dirs {
		for _, made := range []string{filepath.Dir(filepath.Dir(dir)), filepath.Dir(dir), dir} {
			if err := makeDir(made); err != nil {
				return nil, fmt.Errorf("cannot make a cgroup for a command: %w", err)
			}
		}
	}
	if err := bound(paths, memoryBytes, pids); err != nil {
		return nil, fmt.Errorf("cannot bound the commands of a user: %w", err)
	}
	c := &Commands{Group: group(paths)}
	var err error
	if c.lock, err = os.Open(c.dirs[0]); err != nil {
		return nil, err
	}
	if err = unix.Flock(int(c.lock.Fd()), unix.LOCK_EX); err == nil && !c.present() {
		err = unix.ENOENT // the lock's last owner has removed it
	}
	if err != nil {
		c.lock.Close()
		return nil, err
	}
	return c, nil
}

// present reports whether every directory is still there, and the first is the locked one.
func (c *Commands) present() bool {
	locked, err := c.lock.Stat()
	if err != nil {
		return false
	}
	for i, dir := range c.dirs {
		info, err := os.Stat(dir)
		if err != nil || i == 0 && !os.SameFile(info, locked) {
			return false
		}
	}
	return true
}

// Dirs are the directories that a command joins by its number in cgroup.procs.
func (c *Commands) Dirs() []string { return slices.Clone(c.dirs) }

// End kills every process of the command, and removes its cgroups. The next command of the
// run may begin.
func (c *Commands) End(ctx context.Context) error {
	defer c.lock.Close()
	return endCommands(ctx, c.Group)
}

// endCommands also removes the user's directories where they are empty.
func endCommands(ctx context.Context, g *Group) error {
	if err := g.Kill(ctx); err != nil {
		return err
	}
	if err := g.Remove(ctx); err != nil {
		return err
	}
	for _, dir := range g.dirs {
		_ = unix.Rmdir(filepath.Dir(dir)) // another run of the user's may have one in it
	}
	return nil
}

// commandPaths leaves cpuset out: a new one takes no process before it is given CPUs.
func (h *Host) commandPaths(user, name string) map[string]string {
	paths, cpuset := map[string]string{}, h.trees["cpuset"]
	for controller, t := range h.trees {
		if !t.foreign && (h.mode == ModeV2 || controller != "cpuset" && t.mount != cpuset.mount) {
			paths[controller] = filepath.Join(h.parent(controller), user, name)
		}
	}
	return paths
}

// bound writes the limits of the user's directory. A missing file is an error where the limit
// would not hold; swap is not counted everywhere.
func bound(paths map[string]string, memoryBytes, pids int64) error {
	memory, tasks := paths[unified], paths[unified]
	limits := []string{"memory.max", "memory.swap.max"}
	swap := int64(0)
	if paths["memory"] != "" {
		memory, limits, swap = paths["memory"], []string{"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"}, memoryBytes
	}
	if paths["pids"] != "" {
		tasks = paths["pids"]
	}
	if err := write(filepath.Dir(memory), limits[0], strconv.FormatInt(memoryBytes, 10)); err != nil {
		return err
	}
	if err := write(filepath.Dir(memory), limits[1], strconv.FormatInt(swap, 10)); err != nil && !isGone(err) {
		return err
	}
	return write(filepath.Dir(tasks), "pids.max", strconv.FormatInt(pids, 10))
}

// EndCommands kills what commands of the run of this name still run, of whichever user, and
// removes their cgroups.
func (h *Host) EndCommands(ctx context.Context, name string) error {
	return h.eachCommand(func(user, found string) error {
		if found != name {
			return nil
		}
		return endCommands(ctx, group(h.commandPaths(user, name)))
	})
}

// AbandonedCommands returns the names of the runs that have commands whose maker has ended,
// sorted.
func (h *Host) AbandonedCommands() (names []string, err error) {
	err = h.eachCommand(func(user, name string) error {
		if !held(group(h.commandPaths(user, name)).dirs[0]) {
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// held reports whether a process has the lock of a directory.
func held(path string) bool {
	dir, err := os.Open(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	return errors.Is(unix.Flock(int(dir.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// eachCommand calls visit once for each user and run with a directory in any hierarchy.
func (h *Host) eachCommand(visit func(user, name string) error) error {
	found := map[string]bool{}
	for controller, t := range h.trees {
		if t.foreign {
			continue
		}
		// An error means that there is none: the directory may be removed meanwhile.
		dirs, _ := filepath.Glob(filepath.Join(h.parent(controller), commandsPrefix+"*", "*"))
		for _, dir := range dirs {
			parent, name := filepath.Split(dir)
			if user := filepath.Base(parent); commandsPattern.MatchString(user) && namePattern().MatchString(name) {
				found[user+"/"+name] = true
			}
		}
	}
	var failures []error
	for key := range found {
		user, name, _ := strings.Cut(key, "/")
		failures = append(failures, visit(user, name))
	}
	return errors.Join(failures...)
}
