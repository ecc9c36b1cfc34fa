package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// treePrefix and an agent's name are the name of the directory above an agent that may start
// others, and above those: it carries the agent's limits, so they hold for the sum. It has no
// process of its own, because a v2 cgroup has either processes or children with controllers.
const treePrefix = "tree-"

var treePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + treePrefix + `[0-9a-f]{16}(-[0-9a-f]{8})?$`) })

// treesMost is how many of these directories may be above an agent: agent.SpawnDepthMost levels
// of children, and the agent that a person started.
const treesMost = 9

// Family says where an agent is among agents that start others. The zero value is an agent that
// a person started and that starts none.
type Family struct {
	Above  map[string]string // Placement.Paths of the agent that started it; nil: none did
	Parent bool              // it may start others: it gets a tree of its own
}

// PlaceIn is Place for an agent of a family. On v1 it is an error if this process is not in the
// cgroup in which the agent above was started: Beside moves it there.
func (h *Host) PlaceIn(name string, f Family) (Placement, error) {
	own := name
	if f.Parent {
		own = treePrefix + name + "/" + name
	}
	if f.Above == nil {
		return h.Place(own), nil
	}
	p := Placement{Paths: map[string]string{}}
	for controller, path := range f.Above {
		t, found := h.trees[controller]
		if !isAgentDir(path) || filepath.Base(filepath.Dir(path)) != treePrefix+filepath.Base(path) {
			return p, fmt.Errorf("cannot place an agent below %q, which has no tree", path)
		}
		all := agentsDir(path)
		if !found || t.foreign || all != h.parent(controller) {
			return p, fmt.Errorf("cannot place an agent below %q from another cgroup", path)
		}
		p.Paths[controller] = filepath.Join(filepath.Dir(path), own)
		p.OCIPath = h.ociParent() + strings.TrimPrefix(p.Paths[controller], all)
	}
	return p, nil
}

// Beside returns the host as a process sees it that was started where the agent at these paths
// was. libcontainer places an agent on v1 below the cgroup of the process that starts it: this
// process is moved there if it is in another one.
func (h *Host) Beside(above map[string]string) (*Host, error) {
	moved := false
	for controller, path := range above {
		t, found := h.trees[controller]
		if !found || h.mode == ModeV2 || controller == unified || !isAgentDir(path) || agentsDir(path) == h.parent(controller) {
			continue
		}
		if base := filepath.Dir(agentsDir(path)); base == t.mount || strings.HasPrefix(base, t.mount+"/") {
			if err := write(base, "cgroup.procs", "0"); err != nil { // "0" is the writer itself, cgroups(7)
				return nil, fmt.Errorf("cannot move to where the agent above was started: %w", err)
			}
			moved = true
		}
	}
	if !moved {
		return h, nil
	}
	return Detect()
}

// MakeTree makes the tree at these paths, in the form of Placement.Paths, and the directory of
// its agent in it: an empty tree may be removed by another process at any time. The caller limits
// it; Group.Remove of the last agent in it removes it.
func (h *Host) MakeTree(paths map[string]string) (*Group, error) {
	tree := OpenTree(paths)
	if tree == nil {
		return nil, errors.New("cannot make a tree: the agent has none")
	}
	for _, dir := range group(paths).dirs {
		if err := makeInTree(dir); err != nil {
			return nil, fmt.Errorf("cannot make the cgroup of an agent and those that it starts: %w", err)
		}
	}
	if h.mode == ModeV2 {
		return tree, enable(tree.dirs[0])
	}
	return tree, nil
}

// makeInTree makes an agent's directory with its tree, and in v1 the parent of all agents, which
// may not exist yet there.
func makeInTree(dir string) error {
	var err error
	for range commandTries {
		if err = os.MkdirAll(filepath.Dir(dir), 0o755); err == nil {
			err = makeDir(dir)
		}
		if !isGone(err) {
			break
		}
	}
	return err
}

// OpenTree returns the tree of the agent at these paths: all that it started is in it, and the
// agent itself. nil: it has none.
func OpenTree(paths map[string]string) *Group {
	trees := map[string]string{}
	for controller, path := range paths {
		if tree := filepath.Dir(path); isAgentDir(path) && filepath.Base(tree) == treePrefix+filepath.Base(path) {
			trees[controller] = tree
		}
	}
	if len(trees) == 0 {
		return nil
	}
	return group(trees)
}

// TreesAbove returns the trees that the agent at these paths is in, its own or its parent's first.
func TreesAbove(paths map[string]string) (trees []*Group) {
	for {
		above := map[string]string{}
		for controller, path := range paths {
			if dir := filepath.Dir(path); isTree(dir) {
				above[controller] = dir
			}
		}
		if len(above) == 0 {
			return trees
		}
		trees, paths = append(trees, group(above)), above
	}
}

// Paths are the directories of the group by controller, as in Placement.
func (g *Group) Paths() map[string]string {
	paths := map[string]string{}
	for controller, path := range g.paths {
		paths[controller] = path
	}
	return paths
}

// Exhausted reports whether the group's own limit of memory had no more, and not one below or
// above. v1 counts nothing of that: at its limit the peak is within a huge page of it.
func (g *Group) Exhausted() bool {
	var f files
	if dir := g.paths["memory"]; dir != "" {
		limit, peak := bounded64(f.number(dir, "memory.limit_in_bytes")), f.number(dir, "memory.max_usage_in_bytes")
		return limit != nil && peak != nil && *peak >= *limit-*limit/4
	}
	out := at(f.keys(g.paths[unified], "memory.events.local"), "oom")
	return out != nil && *out > 0
}

func isTree(dir string) bool { return treePattern().MatchString(filepath.Base(dir)) }

// agentsDir is the directory of all agents above an agent's or a tree's.
func agentsDir(path string) string {
	dir := filepath.Dir(path)
	for isTree(dir) {
		dir = filepath.Dir(dir)
	}
	return dir
}

// removeTrees removes the trees above an agent's directory that is gone, up to one that is in use.
func removeTrees(dir string) {
	if !isAgentDir(dir) {
		return
	}
	for dir = filepath.Dir(dir); isTree(dir); dir = filepath.Dir(dir) {
		if err := unix.Rmdir(dir); err != nil && err != unix.ENOENT {
			return // another agent is in it
		}
	}
}

// eachAgent calls visit with each agent's directory below dir, which is that of all agents or a
// tree. A tree with nothing in it counts as its agent's, whose directory is gone.
func eachAgent(dir string, visit func(path string)) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !isGone(err) {
		return fmt.Errorf("cannot list agents: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case !entry.IsDir():
		case namePattern().MatchString(entry.Name()):
			visit(path)
		case isTree(path):
			agents := 0
			if err := eachAgent(path, func(path string) { agents++; visit(path) }); err != nil {
				return err
			}
			if agents == 0 {
				visit(filepath.Join(path, strings.TrimPrefix(entry.Name(), treePrefix)))
			}
		}
	}
	return nil
}

// Find returns the directories of the agent of this name, wherever they are among the trees; where
// it has none, those of Place.
func (h *Host) Find(name string) map[string]string {
	paths := h.Place(name).Paths
	for controller := range paths {
		_ = eachAgent(h.parent(controller), func(path string) { // a directory that cannot be listed has nothing to find
			if filepath.Base(path) == name {
				paths[controller] = path
			}
		})
	}
	return paths
}
