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

// Names of the directory that holds all agents of this host, one per hierarchy. It is not
// removed with the last agent: libcontainer makes "clove" and "clove/ID" in two steps, and
// if another run removed the parent in between, that start would fail.
//
// On v2 agents are two levels deeper, below a cgroup that a systemd unit of that name
// delegates to clove (Delegate=). systemd disables controllers in a slice when none of its
// units needs them, but not those in use further down; and the limits of the unit's own
// cgroup are systemd's, so the memory of all agents is limited one level below it
// (LimitTogether). Without systemd the names are the same.
const (
	parentV1 = "clove"
	sliceV2  = "clove.slice"
	unitV2   = "clove-agents.service"
	agentsV2 = "agents"
	parentV2 = sliceV2 + "/" + unitV2 + "/" + agentsV2
)

// supervisorsV2 holds the supervisors of detached agents. They outlive cloved, so they must
// not be in the cgroup of its unit.
const supervisorsV2 = "supervisors"

// namePattern is the form of an agent's directory: its id and, if the host has several
// installations of clove, a dash and the installation that owns it. Other directories below
// the parent are never listed, killed or removed.
var namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{16}(-[0-9a-f]{8})?$`) })

// wanted are the v2 controllers that limits and figures need. The domain controllers come
// first: only their enabling fails with EBUSY where processes are in the way.
var wanted = []string{"memory", "io", "cpu", "cpuset", "pids"}

// Placement says where an agent's cgroups are.
type Placement struct {
	// OCIPath is linux.cgroupsPath of the OCI configuration. On v1 it is relative, so that
	// the agent is below clove's own cgroup and clove's own limits apply to it.
	OCIPath string
	// Paths are the absolute directories by controller, "" for the v2 tree, as libcontainer
	// names them. Controllers of one mount share a directory.
	Paths map[string]string
}

// Place returns the place for the agent of this name (namePattern). It changes nothing.
func (h *Host) Place(name string) Placement {
	if h.mode == ModeV2 {
		return Placement{
			OCIPath: h.ociParent() + "/" + name,
			Paths:   map[string]string{unified: filepath.Join(h.parent(unified), name)},
		}
	}
	p := Placement{OCIPath: h.ociParent() + "/" + name, Paths: map[string]string{}}
	for controller, t := range h.trees {
		// A hierarchy in which clove's own cgroup is not visible has no path that could be
		// named here. Missing reports it, and the run is refused unless it may do without.
		if !t.foreign {
			p.Paths[controller] = filepath.Join(h.parent(controller), name)
		}
	}
	return p
}

// ociParent is the beginning of every Placement.OCIPath.
func (h *Host) ociParent() string {
	if h.mode == ModeV2 {
		return "/" + parentV2
	}
	return parentV1
}

// slice and unit return the directories on v2 that systemd knows.
func (h *Host) slice() string { return filepath.Join(h.trees[unified].base, sliceV2) }
func (h *Host) unit() string  { return filepath.Join(h.slice(), unitV2) }

// parent returns the directory that holds all agents in one hierarchy.
func (h *Host) parent(name string) string {
	if h.mode == ModeV2 {
		return filepath.Join(h.trees[name].base, parentV2)
	}
	return filepath.Join(h.trees[name].base, parentV1)
}

// Prepare makes what Place needs, and limits the memory of all agents together where that
// has no limit yet (LimitTogether). It is idempotent and may run in any number of processes
// at once.
func (h *Host) Prepare() error {
	if err := h.makeParents(); err != nil {
		return err
	}
	return h.limitTogether(0, false)
}

// makeParents makes on v2 the slice and the cgroups in it, with every wanted controller
// that this host offers enabled from the mount point down; in a container the processes at
// the mount point are moved first (delegate). On v1 each hierarchy has its controller
// already, and libcontainer makes the parents that have no limit of their own.
func (h *Host) makeParents() error {
	dirs := []string{h.slice(), h.unit(), h.parent(unified)}
	if h.mode != ModeV2 {
		dirs = nil
		if dir, _ := h.memoryParent(); dir != "" {
			dirs = []string{dir}
		}
	}
	for _, dir := range dirs {
		if err := makeDir(dir); err != nil {
			return fmt.Errorf("cannot make the parent of all agents: %w", err)
		}
	}
	if h.mode != ModeV2 {
		return nil
	}
	// Top down: a cgroup can give its children only what its own parent has given to it.
	if err := delegate(h.trees[unified].mount); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := enable(dir); err != nil {
			return err
		}
	}
	return nil
}

// PrepareSupervisors makes the cgroup of the supervisors and opens it, for clone3(2) with
// CLONE_INTO_CGROUP. It returns nil on v1, where supervisors stay in cloved's own cgroup.
func (h *Host) PrepareSupervisors() (*os.File, error) {
	if h.mode != ModeV2 {
		return nil, nil
	}
	if err := h.Prepare(); err != nil {
		return nil, err
	}
	dir := filepath.Join(h.unit(), supervisorsV2)
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("cannot make the cgroup of supervisors: %w", err)
	}
	return os.Open(dir)
}

// makeDir accepts a directory that exists already.
func makeDir(dir string) error {
	if err := os.Mkdir(dir, 0o755); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// enable enables in dir's children the wanted controllers that dir has. They are written
// one by one, because the kernel rejects a line as a whole. Those enabled already are
// skipped, because even a write without effect takes the kernel's global cgroup lock.
func enable(dir string) error {
	offered, err := readFields(dir, "cgroup.controllers")
	if err != nil {
		return fmt.Errorf("cannot read what %s offers: %w", dir, err)
	}
	enabled, err := readFields(dir, "cgroup.subtree_control")
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

// List returns the names of all agents that have a cgroup below the parent in any
// hierarchy, sorted; one whose tree alone is left, with no agent in it, is among them. Whether one is a leftover only the store of its installation can tell.
// A run whose teardown was interrupted may be left in one hierarchy only, so all are read.
func (h *Host) List() ([]string, error) {
	names := []string{}
	for name, t := range h.trees {
		if t.foreign {
			continue
		}
		// The parent may not exist yet in a hierarchy; then it holds no agent.
		if err := eachAgent(h.parent(name), func(path string) { names = append(names, filepath.Base(path)) }); err != nil {
			return nil, err
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// isAgentDir reports whether path has the form that Place or PlaceIn returns. Group kills and
// removes what it opens, and the paths come from the store, so a damaged entry must not name
// another directory.
func isAgentDir(path string) bool {
	dir := agentsDir(path)
	return filepath.IsAbs(path) && filepath.Clean(path) == path && strings.Count(dir, "/") > 1 &&
		strings.Count(path, "/")-strings.Count(dir, "/") <= treesMost+1 && namePattern().MatchString(filepath.Base(path)) &&
		(strings.HasSuffix(dir, "/"+parentV1) || strings.HasSuffix(dir, "/"+unitV2+"/"+agentsV2))
}
