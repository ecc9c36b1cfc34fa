package cgroups

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	testID  = "0123456789abcdef"
	otherID = "fedcba9876543210-0a1b2c3d" // of another installation
)

func TestPlace(t *testing.T) {
	hybrid := v1Machine(nil)
	hybrid["/proc/self/mountinfo"] += mounts("/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw",
		"/ /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct")
	hybrid["/proc/self/cgroup"] += "2:cpu,cpuacct:/s\n0::/s\n"
	cases := []struct {
		name, ociPath string
		host          machine
		want          map[string]string
	}{
		{"v2", "/clove.slice/clove-agents.service/agents/" + testID, v2Machine(nil), map[string]string{"": "/sys/fs/cgroup/clove.slice/clove-agents.service/agents/" + testID}},
		{"hybrid", "clove/" + testID, hybrid, map[string]string{
			"":        "/sys/fs/cgroup/unified/clove/" + testID,
			"memory":  "/sys/fs/cgroup/memory/a/clove/" + testID,
			"pids":    "/sys/fs/cgroup/pids/clove/" + testID,
			"blkio":   "/sys/fs/cgroup/blkio/clove/" + testID,
			"devices": "/sys/fs/cgroup/devices/unseen/clove/" + testID,
			"cpu":     "/sys/fs/cgroup/cpu,cpuacct/s/clove/" + testID,
			"cpuacct": "/sys/fs/cgroup/cpu,cpuacct/s/clove/" + testID,
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := c.host.write(t)
			h, err := detect(root)
			if err != nil {
				t.Fatal(err)
			}
			got := h.Place(testID)
			if got.OCIPath != c.ociPath {
				t.Errorf("OCIPath %q", got.OCIPath)
			}
			for name, path := range got.Paths {
				if strings.TrimPrefix(path, root) != c.want[name] {
					t.Errorf("%q is at %s, want %s", name, path, c.want[name])
				}
			}
			if len(got.Paths) != len(c.want) {
				t.Errorf("%d paths, want %d (a foreign tree has none)", len(got.Paths), len(c.want))
			}
			if _, err := Open(got.Paths); err != nil {
				t.Errorf("what Place gives cannot be opened: %v", err)
			}
		})
	}
}

func TestOpenRefusesWhatIsNotAnAgents(t *testing.T) {
	for _, path := range []string{
		"", "/", "clove/" + testID, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/clove", "/sys/fs/cgroup/docker/" + testID,
		"/sys/fs/cgroup/clove/short", "/sys/fs/cgroup/clove/" + testID + "-", "/sys/fs/cgroup/clove/" + otherID + "0",
		"/sys/fs/cgroup/clove/" + strings.ToUpper(testID),
		"/sys/fs/cgroup/clove/" + testID + "/", "/sys/fs/cgroup/clove/../clove/" + testID, "/sys/fs/cgroup/clove/" + testID + "/sub",
	} {
		if _, err := Open(map[string]string{"memory": path}); err == nil {
			t.Errorf("opened %q", path)
		}
	}
	if _, err := Open(map[string]string{"memory": "/sys/fs/cgroup/clove/" + otherID}); err != nil {
		t.Errorf("refused an agent's directory: %v", err)
	}
	if _, err := Open(nil); err == nil {
		t.Error("opened nothing")
	}
}

// prepared is a v2 machine with the slice, and with the files that the kernel would have made
// in it.
func prepared(root, slice machine) machine {
	m := v2Machine(root)
	for name, text := range slice {
		m[cgroupV2+"clove.slice/"+name] = text
		m[cgroupV2+"clove.slice/clove-agents.service/"+name] = text
		m[cgroupV2+"clove.slice/clove-agents.service/agents/"+name] = text
	}
	return m
}

func TestPrepareEnablesWhatIsOfferedAndOff(t *testing.T) {
	root := prepared(
		machine{"cgroup.controllers": "cpu hugetlb memory", "cgroup.subtree_control": "cpu"},
		machine{"cgroup.controllers": "memory cpu", "cgroup.subtree_control": "memory cpu"}).write(t)
	h, err := detect(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Prepare(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{"": "+memory", "clove.slice": "memory cpu", "clove.slice/clove-agents.service": "memory cpu", "clove.slice/clove-agents.service/agents": "memory cpu"} {
		got, err := os.ReadFile(filepath.Join(root, cgroupV2, dir, "cgroup.subtree_control"))
		if err != nil || string(got) != want {
			t.Errorf("%q: wrote %q (%v), want %q", dir, got, err, want)
		}
	}
}

func TestPrepareSaysWhatFailed(t *testing.T) {
	cases := []struct {
		name string
		host machine
		want string
	}{
		{"no controllers file", v2Machine(nil), "cannot read what"},
		{"no control file", v2Machine(machine{"cgroup.controllers": "cpu"}), "delegates"},
		{"slice that is not a cgroup", v2Machine(machine{"cgroup.controllers": "", "cgroup.subtree_control": "", "clove.slice/x": ""}),
			"clove.slice"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := hostOf(t, c.host).Prepare()
			if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestPrepareNeedsNothingOnV1(t *testing.T) {
	if err := hostOf(t, v1Machine(nil)).Prepare(); err != nil {
		t.Fatal(err)
	}
}

func TestList(t *testing.T) {
	h := hostOf(t, v1Machine(machine{
		"memory/a/clove/" + otherID + "/cgroup.procs": "",
		"memory/a/clove/notes/cgroup.procs":           "",
		"memory/a/clove/cgroup.procs":                 "",
		"memory/clove/00000000000000ff/cgroup.procs":  "", // of another clove, below another cgroup
		"pids/clove/" + testID + "/cgroup.procs":      "",
		"pids/clove/" + otherID + "/cgroup.procs":     "",
	}))
	got, err := h.List()
	if want := []string{testID, otherID}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got, err := hostOf(t, v2Machine(nil)).List(); err != nil || got == nil || len(got) != 0 {
		t.Errorf("a host without agents lists %v, %v", got, err)
	}
}

func TestListSaysWhatFailed(t *testing.T) {
	if _, err := hostOf(t, v1Machine(machine{"pids/clove": "a file"})).List(); err == nil {
		t.Error("a parent that is a file was listed")
	}
}
