package container

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/runc/libcontainer/system"
)

// child starts a process that waits until it is killed or the test ends.
func child(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("cat")
	if _, err := c.StdinPipe(); err != nil { // it stays open, so the process waits
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// created is the creation time of all containers in these tests.
var created = time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)

// kept writes the state of a container without a cgroup whose first process is pid, in
// libcontainer's format.
func kept(t *testing.T, e Engine, id string, pid int) {
	t.Helper()
	started := uint64(1)
	if stat, err := system.Stat(pid); err == nil {
		started = stat.StartTime
	}
	text, err := json.Marshal(map[string]any{
		"id": id, "init_process_pid": pid, "init_process_start": started, "created": created,
		"cgroup_paths": map[string]string{"": "/sys/fs/cgroup/clove-test-without-a-cgroup"},
		"config": map[string]any{
			"rootfs": "/bundles/one/rootfs", "version": "1.3.0",
			"labels":     []string{"run.clove.limits.pids=64", "org.example=a=b", "bundle=/bundles/one"},
			"namespaces": []map[string]string{{"type": "NEWPID"}},
			"cgroups":    map[string]any{},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(e.Root, id), 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.Root, id, "state.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// load loads a container that must exist.
func load(t *testing.T, e Engine, id string) *Container {
	t.Helper()
	c, err := e.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
