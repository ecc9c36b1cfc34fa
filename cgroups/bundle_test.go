package cgroups

import "testing"

// TestABundlesCgroupIsBelowTheTree: the engine chooses its path, and a kill of it must not
// kill the host.
func TestABundlesCgroupIsBelowTheTree(t *testing.T) {
	for path, want := range map[string]bool{
		"/sys/fs/cgroup/docker/0123":         true,
		"/sys/fs/cgroup/system.slice/a:b:c":  true,
		"/sys/fs/cgroup/pids/kubepods/pod-1": true,
		"/sys/fs/cgroup":                     false,
		"/sys/fs/cgroup/":                    false,
		"/sys/fs/cgroup/unified":             false,
		"/sys/fs/cgroup/a/..":                false,
		"/sys/fs/cgroup/../../../etc":        false,
		"/sys/fs/cgroups/a":                  false,
		"sys/fs/cgroup/a":                    false,
		"/":                                  false,
		"":                                   false,
	} {
		if _, err := OpenBundle(map[string]string{unified: path}); (err == nil) != want {
			t.Errorf("%q: %v", path, err)
		}
	}
	if _, err := OpenBundle(nil); err == nil {
		t.Error("no path is a cgroup")
	}
}
