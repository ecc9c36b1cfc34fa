package cgroups

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	childID      = "00000000000000c1-0a1b2c3d"
	grandchildID = "00000000000000d2-0a1b2c3d"
)

// withoutRoot shows paths without the machine's root.
func withoutRoot(root string, paths map[string]string) map[string]string {
	shown := maps.Clone(paths)
	for controller, path := range shown {
		shown[controller] = strings.TrimPrefix(path, root)
	}
	return shown
}

func TestPlaceInAFamily(t *testing.T) {
	hybrid := v1Machine(nil)
	hybrid["/proc/self/mountinfo"] += mounts("/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw")
	hybrid["/proc/self/cgroup"] += "0::/s\n"
	const agents = "/sys/fs/cgroup/clove.slice/clove-agents.service/agents"
	for name, c := range map[string]struct {
		host  machine
		oci   string // of all agents
		roots map[string]string
	}{
		"v2": {v2Machine(nil), "/clove.slice/clove-agents.service/agents", map[string]string{"": agents}},
		"hybrid": {hybrid, "clove", map[string]string{"": "/sys/fs/cgroup/unified/clove", "memory": "/sys/fs/cgroup/memory/a/clove",
			"pids": "/sys/fs/cgroup/pids/clove", "blkio": "/sys/fs/cgroup/blkio/clove", "devices": "/sys/fs/cgroup/devices/unseen/clove"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := c.host.write(t)
			h, err := detect(root)
			if err != nil {
				t.Fatal(err)
			}
			var above map[string]string
			tree := ""
			for _, who := range []struct {
				id     string
				parent bool
			}{{otherID, true}, {childID, true}, {grandchildID, false}} {
				got, err := h.PlaceIn(who.id, Family{Above: above, Parent: who.parent})
				if err != nil {
					t.Fatal(err)
				}
				if who.parent {
					tree += "/tree-" + who.id
				}
				if want := c.oci + tree + "/" + who.id; got.OCIPath != want {
					t.Errorf("OCIPath %q, want %q", got.OCIPath, want)
				}
				want := map[string]string{}
				for controller, dir := range c.roots {
					want[controller] = dir + tree + "/" + who.id
				}
				if shown := withoutRoot(root, got.Paths); !maps.Equal(shown, want) {
					t.Errorf("paths %v, want %v", shown, want)
				}
				if _, err := Open(got.Paths); err != nil {
					t.Errorf("what PlaceIn gives cannot be opened: %v", err)
				}
				if has := OpenTree(got.Paths) != nil; has != who.parent {
					t.Errorf("a tree of its own: %v, want %v", has, who.parent)
				}
				if n, want := len(TreesAbove(got.Paths)), strings.Count(tree, "/"); n != want {
					t.Errorf("%d trees above, want %d", n, want)
				}
				above = got.Paths
			}
			if _, err := h.PlaceIn(testID, Family{Above: above}); err == nil {
				t.Error("an agent was placed below one without a tree")
			}
		})
	}
}

// The agent above may have been started in another cgroup on v1. libcontainer would place the
// child below this process's own.
func TestPlaceInAnotherCgroupIsRefused(t *testing.T) {
	h := hostOf(t, v1Machine(nil))
	elsewhere := h.Place(treePrefix + otherID + "/" + otherID).Paths
	elsewhere["memory"] = strings.Replace(elsewhere["memory"], "/a/clove", "/b/clove", 1)
	if _, err := h.PlaceIn(childID, Family{Above: elsewhere}); err == nil {
		t.Error("it was placed below another parent than its own")
	}
}

func TestBesideMovesThisProcess(t *testing.T) {
	root := v1Machine(machine{"memory/b/cgroup.procs": "", "memory/a/cgroup.procs": "", "pids/cgroup.procs": ""}).write(t)
	h, err := detect(root)
	if err != nil {
		t.Fatal(err)
	}
	at := h.Place(treePrefix + otherID + "/" + otherID).Paths
	if same, err := h.Beside(at); err != nil || same != h {
		t.Fatalf("a process that is there already was moved: %v", err)
	}
	at["memory"] = strings.Replace(at["memory"], "/a/clove", "/b/clove", 1)
	if _, err := h.Beside(at); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"memory/b": "0", "memory/a": "", "pids": ""} {
		if got, _ := os.ReadFile(filepath.Join(root, "sys/fs/cgroup", path, "cgroup.procs")); string(got) != want {
			t.Errorf("%s: wrote %q, want %q", path, got, want)
		}
	}
}

func TestOpenRefusesWhatIsNoTree(t *testing.T) {
	deep := "/sys/fs/cgroup/clove" + strings.Repeat("/tree-"+otherID, treesMost)
	for path, want := range map[string]bool{
		"/sys/fs/cgroup/clove/tree-" + otherID + "/" + otherID: true,
		deep + "/" + testID:                                    true,
		deep + "/tree-" + otherID + "/" + testID:               false, // one level too deep
		"/sys/fs/cgroup/clove/tree-" + otherID:                 false,
		"/sys/fs/cgroup/clove/tree-x/" + otherID:               false,
		"/sys/fs/cgroup/clove/trees/" + otherID:                false,
		"/sys/fs/cgroup/docker/tree-" + otherID + "/" + testID: false,
		"/sys/fs/cgroup/clove/" + otherID + "/" + testID:       false,
		"/tree-" + otherID + "/" + testID:                      false,
		"tree-" + otherID + "/" + testID:                       false,
	} {
		if _, err := Open(map[string]string{"memory": path}); (err == nil) != want {
			t.Errorf("%s: opened %v, want %v", path, err == nil, want)
		}
	}
}

func TestListAndFindInTrees(t *testing.T) {
	h := hostOf(t, v1Machine(machine{
		"memory/a/clove/tree-" + otherID + "/" + childID + "/cgroup.procs":                           "",
		"pids/clove/tree-" + otherID + "/tree-" + childID + "/" + grandchildID + "/cgroup.procs":     "",
		"pids/clove/tree-" + testID + "/cgroup.procs":                                                "", // its agent is gone
		"pids/clove/tree-" + otherID + "/notes/cgroup.procs":                                         "",
		"pids/clove/tree-notes/" + testID + "/cgroup.procs":                                          "",
		"devices/unseen/clove/tree-" + otherID + "/" + otherID + "/session-1/0123456789abcdef/tasks": "",
	}))
	got, err := h.List()
	want := []string{grandchildID, childID, testID, otherID}
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for id, want := range map[string]string{grandchildID: "/tree-" + otherID + "/tree-" + childID + "/" + grandchildID, testID: "/tree-" + testID + "/" + testID, childID: "/" + childID} {
		if got := h.Find(id)["pids"]; !strings.HasSuffix(got, "/pids/clove"+want) {
			t.Errorf("%s was found at %s", id, got)
		}
	}
}
