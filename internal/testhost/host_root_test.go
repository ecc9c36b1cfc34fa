//go:build root

package testhost

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHostIsWhatTheLaneSays prevents a pass in one lane from being taken for a pass in the
// other.
func TestHostIsWhatTheLaneSays(t *testing.T) {
	Root(t)
	comm, err := os.ReadFile("/proc/1/comm")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("process 1 is %s", strings.TrimSpace(string(comm)))
	if Lane() != LaneVM {
		return
	}
	if Cgroup() != CgroupV2 {
		t.Errorf("the vm lane runs on cgroup %s, want v2", Cgroup())
	}
	if got := strings.TrimSpace(string(comm)); got != "systemd" {
		t.Errorf("process 1 of the vm lane is %s, want systemd", got)
	}
}

// TestResidueIsSeen leaves one thing of each kind that needs privilege, one at a time.
// NoResidue must name it, and the host must be as before once it is gone.
func TestResidueIsSeen(t *testing.T) {
	Root(t)
	for _, c := range []struct {
		name  string
		leave func(t *testing.T, dir string)
		named string
	}{
		{"mount", leaveMount, "mount: "},
		{"loop device", leaveLoop, "loop device: "},
		{"network namespace", leaveNetworkNamespace, "network namespace: net:["},
		{"cgroup and process", leaveCgroup, "process in a clove cgroup: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			NoResidue(t, dir)
			before := listAll(t, []string{dir})
			c.leave(t, dir)
			extra := strings.Join(added(before, listAll(t, []string{dir})), "\n")
			if !strings.Contains(extra, c.named) {
				t.Errorf("left behind %q, want %q in it", extra, c.named)
			}
		})
	}
}

func leaveMount(t *testing.T, dir string) {
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

func leaveLoop(t *testing.T, dir string) {
	losetup := Tool(t, "losetup")
	backing := filepath.Join(dir, "image")
	if err := os.WriteFile(backing, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(backing) })
	device, err := exec.Command(losetup, "--find", "--show", backing).Output()
	if err != nil {
		t.Fatalf("cannot attach a loop device: %v", err)
	}
	t.Cleanup(func() {
		if err := exec.Command(losetup, "--detach", strings.TrimSpace(string(device))).Run(); err != nil {
			t.Errorf("cannot detach %s: %v", device, err)
		}
	})
}

// sleeper starts a process that lives until the test's clean-up.
func sleeper(t *testing.T, attr *syscall.SysProcAttr) *os.Process {
	command := exec.Command(Tool(t, "sleep"), "600")
	command.SysProcAttr = attr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill()
		command.Wait() // reports the kill
	})
	return command.Process
}

func leaveNetworkNamespace(t *testing.T, _ string) {
	sleeper(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
}

// leaveCgroup makes a cgroup where an agent's would be on this host: on the v2 tree, which on
// a hybrid host is the one without controllers.
func leaveCgroup(t *testing.T, _ string) {
	root := "/sys/fs/cgroup"
	if Cgroup() == CgroupHybrid {
		root = "/sys/fs/cgroup/unified"
	}
	parent := filepath.Join(root, "testhost", "clove")
	group := filepath.Join(parent, "left")
	if err := os.MkdirAll(group, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, path := range []string{group, parent, filepath.Dir(parent)} {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	})
	// Clone into the cgroup: the process is in it from its first moment, and gone from it
	// after its kill was waited for.
	folder, err := os.Open(group)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	sleeper(t, &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())})
}
