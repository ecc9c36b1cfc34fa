package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Names of the directory that holds all agents of this host, one per
// hierarchy. It stays when the last agent ends, as a systemd slice does:
// libcontainer makes "clove" and "clove/ID" in two steps, and a parent that
// another run removed between them would fail that start.
//
// On v2 agents are one step further down, in a cgroup that a unit of that name
// (Delegate=) makes clove's own where systemd knows it: systemd takes
// controllers away from a slice when none of its units wants them, but not what
// the kernel sees enabled further down. The names are the same without systemd.
const (
	parentV1 = "clove"
	sliceV2  = "clove.slice"
	agentsV2 = "clove-agents.service"
	parentV2 = sliceV2 + "/" + agentsV2
)

// supervisorsV2 holds the supervisors of detached agents: they outlive cloved,
// so its own unit is no place for them.
const supervisorsV2 = "supervisors"

// namePattern is the form of an agent's directory: its id and, after a dash,
// which installation of clove owns it, where one host has several. A directory
// below the parent that does not have it is not ours to list, kill or remove.
var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{16}(-[0-9a-f]{8})?$`) })

// wanted are the v2 controllers that limits and figures rest upon. The domain
// controllers come first: only they are refused where processes are in the way.
var wanted = []string{"memory", "io", "cpu", "cpuset", "pids"}

// Placement says where an agent's cgroups are.
type Placement struct {
	// OCIPath is linux.cgroupsPath of the OCI configuration: on v1 relative, so
	// that it lands below clove's own cgroup and clove's own limits still hold.
	OCIPath string
	// Paths are the absolute directories by controller, "" for the v2 tree, in
	// libcontainer's terms. Co-mounted controllers share one directory.
	Paths map[string]string
}

// Place returns where the agent of this name (namePattern) goes. It touches
// nothing.
func (h *Host) Place(name string) Placement {
	if h.mode == ModeV2 {
		return Placement{
			OCIPath: "/" + parentV2 + "/" + name,
			Paths:   map[string]string{unified: filepath.Join(h.parent(unified), name)},
		}
	}
	p := Placement{OCIPath: parentV1 + "/" + name, Paths: map[string]string{}}
	for controller, t := range h.trees {
		if !t.foreign {
			p.Paths[controller] = filepath.Join(h.parent(controller), name)
		}
	}
	return p
}

// parent returns the directory that holds all agents in one hierarchy.
func (h *Host) parent(name string) string {
	if h.mode == ModeV2 {
		return filepath.Join(h.trees[name].base, parentV2)
	}
	return filepath.Join(h.trees[name].base, parentV1)
}

// Prepare makes what Place needs: on v2 the slice and what is delegated in it,
// with every wanted controller that this host offers enabled from the mount
// point down to it; in a container the processes at the mount point move out of
// the way (delegate). On v1 a directory has its controller from the start, and
// libcontainer makes the parent. It is idempotent and safe in any number of
// processes at once.
func (h *Host) Prepare() error {
	if h.mode != ModeV2 {
		return nil
	}
	root := h.trees[unified].mount
	slice, agents := filepath.Join(h.trees[unified].base, sliceV2), h.parent(unified)
	for _, dir := range []string{slice, agents} {
		if err := makeDir(dir); err != nil {
			return fmt.Errorf("cannot make the parent of all agents: %w", err)
		}
	}
	if err := delegate(root); err != nil {
		return err
	}
	if err := enable(slice); err != nil {
		return err
	}
	return enable(agents)
}

// PrepareSupervisors makes the cgroup of the supervisors and opens it, for
// clone3(2) to begin them there; nil on v1, where they stay in cloved's own.
func (h *Host) PrepareSupervisors() (*os.File, error) {
	if h.mode != ModeV2 {
		return nil, nil
	}
	if err := h.Prepare(); err != nil {
		return nil, err
	}
	dir := filepath.Join(h.parent(unified), supervisorsV2)
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("cannot make the cgroup of supervisors: %w", err)
	}
	return os.Open(dir)
}

// makeDir takes a directory that is there for its own.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// enable turns on in dir's children what dir itself has. Controllers are
// written one by one, because the kernel refuses a line as a whole; those
// already on are left alone, because even a write without effect takes the
// kernel's global cgroup lock.
func enable(dir string) error {
	offered, err := readWords(dir, "cgroup.controllers")
	if err != nil {
		return fmt.Errorf("cannot read what %s offers: %w", dir, err)
	}
	enabled, err := readWords(dir, "cgroup.subtree_control")
	if err != nil {
		return fmt.Errorf("cannot read what %s delegates: %w", dir, err)
	}
	for _, name := range wanted {
		if !slices.Contains(offered, name) || slices.Contains(enabled, name) {
			continue
		}
		if err := write(dir, "cgroup.subtree_control", "+"+name); err != nil {
			return fmt.Errorf("cannot enable the %s controller in %s: %w", name, dir, err)
		}
	}
	return nil
}

// List returns the names of all agents that have a cgroup below the parent, in
// any hierarchy, sorted. Whether one is a leftover only its owner can tell.
func (h *Host) List() ([]string, error) {
	names := []string{}
	for name, t := range h.trees {
		if t.foreign {
			continue
		}
		entries, err := os.ReadDir(h.parent(name))
		if err != nil && !isGone(err) {
			return nil, fmt.Errorf("cannot list agents: %w", err)
		}
		for _, entry := range entries {
			if entry.IsDir() && namePattern().MatchString(entry.Name()) {
				names = append(names, entry.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// isAgentDir tells whether path has the form that Place gives.
func isAgentDir(path string) bool {
	dir, name := filepath.Split(path)
	parent := filepath.Base(dir)
	return filepath.IsAbs(path) && filepath.Clean(path) == path && strings.Count(path, "/") > 2 &&
		namePattern().MatchString(name) && (parent == parentV1 || parent == agentsV2)
}
