package testhost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAdded(t *testing.T) {
	before := map[string]int{"a": 1, "b": 2}
	after := map[string]int{"b": 2, "c": 1, "d": 3}
	want := []string{"c", "d (3 times)"}
	if got := added(before, after); !slices.Equal(got, want) {
		t.Errorf("added = %q, want %q", got, want)
	}
	if got := added(after, before); !slices.Equal(got, []string{"a"}) {
		t.Errorf("added the other way = %q, want a alone", got)
	}
}

func TestAgentCgroups(t *testing.T) {
	root := t.TempDir()
	for _, path := range []string{
		"memory/own/clove/0123/sub", "clove.slice/4567", "system.slice/clove-lane.service", "pids/clovers/x",
	} {
		if err := os.MkdirAll(filepath.Join(root, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	got, err := agentCgroups(root)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, path := range []string{"clove.slice/4567", "memory/own/clove/0123", "memory/own/clove/0123/sub"} {
		want = append(want, filepath.Join(root, path))
	}
	if !slices.Equal(got, want) {
		t.Errorf("agentCgroups = %q, want %q", got, want)
	}
}

// The parts of the v2 tree that stay for the next agent are no residue; an agent's cgroup is.
func TestParentCgroup(t *testing.T) {
	for path, stays := range map[string]bool{
		"/sys/fs/cgroup/clove.slice/clove-agents.service":               true,
		"/sys/fs/cgroup/clove.slice/clove-agents.service/supervisors":   true,
		"/sys/fs/cgroup/clove.slice/clove-agents.service/agents":        true,
		"/sys/fs/cgroup/clove.slice/clove-agents.service/agents/4567":   false,
		"/sys/fs/cgroup/clove.slice/clove-agents.service/supervisors/x": false,
		"/sys/fs/cgroup/unified/clove/supervisors":                      false,
	} {
		if parentCgroup.MatchString(path) != stays {
			t.Errorf("%s", path)
		}
	}
}

func TestMountsHoldTheRoot(t *testing.T) {
	mounts, err := mounts()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(mounts, func(m mount) bool { return m.point == "/" && m.kind != "" }) {
		t.Errorf("no mount at / among %v", mounts)
	}
}

func TestListersSeeThisProcess(t *testing.T) {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	namespaces, err := listNetworkNamespaces(nil)
	if err != nil || !slices.Contains(namespaces, own) {
		t.Errorf("network namespaces %q, %v, want this process's %q among them", namespaces, err, own)
	}
	for _, kind := range kinds {
		if _, err := kind.list([]string{t.TempDir()}); err != nil {
			t.Errorf("cannot list every %s: %v", kind.name, err)
		}
	}
}

func TestLibraryFilesAreNoLeak(t *testing.T) {
	keep, err := os.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	lines, err := listOwnFiles(nil)
	if err != nil || slices.Contains(lines, "/proc") {
		t.Errorf("own files %q, %v, want no /proc", lines, err)
	}
}

// TestCheckNamesWhatIsLeft leaves one thing of each kind that needs no privilege.
func TestCheckNamesWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		name  string
		leave func(t *testing.T, dir string)
		named string
	}{
		{"a file", leaveFile, "left behind: file: "},
		{"a descriptor", leaveDescriptor, "left behind: open file of the test process: /dev/null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dirs := []string{t.TempDir()}
			wakePoller(t)
			before := listAll(t, dirs)
			c.leave(t, dirs[0])
			w := watch(t, func(t testing.TB) { check(t, before, dirs, 0) })
			if said := strings.Join(w.said, "\n"); !strings.Contains(said, c.named) {
				t.Errorf("check said %q, want %q in it", said, c.named)
			}
		})
	}
}

func leaveFile(t *testing.T, dir string) {
	if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func leaveDescriptor(t *testing.T, _ string) {
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
}

// TestListingIsStable is the control of the test above: nothing else is listed, not even the
// descriptors that the listing itself needs.
func TestListingIsStable(t *testing.T) {
	dirs := []string{t.TempDir()}
	wakePoller(t)
	before := only(listAll(t, dirs))
	if extra := added(before, only(listAll(t, dirs))); extra != nil {
		t.Errorf("nothing was left, and yet: %q", extra)
	}
}

// only keeps the kinds that belong to this process: without the host's lock other programs
// change the rest.
func only(all map[string]int) map[string]int {
	own := map[string]int{}
	for line, count := range all {
		if strings.HasPrefix(line, "file: ") || strings.HasPrefix(line, "open file") {
			own[line] = count
		}
	}
	return own
}
