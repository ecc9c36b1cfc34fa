//go:build root

package oci

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/testhost"
)

// TestTheKeyringIsNewUnlessTheCallersIsWanted: a new keyring has the container's name.
// Keyrings outlive their processes for a while, so each container has a different name.
func TestTheKeyringIsNewUnlessTheCallersIsWanted(t *testing.T) {
	r := newRuntime(t)
	for id, row := range map[string]struct{ flags, want string }{"own": {"", "1"}, "callers": {"--no-new-keyring", "0"}} {
		bundle := r.Bundle("grep -c _ses."+id+" /proc/keys || true", func(s *specs.Spec) { s.Linux.MaskedPaths = nil })
		args := append([]string{"run", "--bundle", bundle}, strings.Fields(row.flags)...)
		if got := r.Do(append(args, id)...); got.Status != 0 || got.Out != row.want {
			t.Errorf("%q: %+v", row.flags, got)
		}
	}
}

// TestNoPivotStillShutsTheHostOut: on a ramdisk pivot_root is not possible. Only the way in
// which the root is changed differs.
func TestNoPivotStillShutsTheHostOut(t *testing.T) {
	r := newRuntime(t)
	bundle := r.Bundle("echo /* | tr ' ' ,; [ -e /usr ] || echo shut out")
	for _, flag := range []string{"", "--no-pivot"} {
		args := append([]string{"run", "--bundle", bundle}, strings.Fields(flag)...)
		if got := r.Do(append(args, "one")...); got.Status != 0 || got.Out != "/bin,/dev,/etc,/proc,/root,/run,/sys,/tmp\nshut out" {
			t.Errorf("%q: %+v", flag, got)
		}
	}
}

// TestTheCgroupIsWhereTheBundleSays: as seen from outside.
func TestTheCgroupIsWhereTheBundleSays(t *testing.T) {
	r := newRuntime(t)
	var path string
	t.Cleanup(func() { removeCgroup(filepath.Dir(path)) }) // runs after the container's own clean-up
	id := waiting(t, r, func(s *specs.Spec) { s.Linux.CgroupsPath += "/deeper"; path = s.Linux.CgroupsPath })
	if got := cgroupOf(t, r.State(id).Pid, "pids"); got != path {
		t.Errorf("it is in %s, not in %s", got, path)
	}
}

// TestExecGoesBelowTheContainersCgroup: if a flag says so.
func TestExecGoesBelowTheContainersCgroup(t *testing.T) {
	r := newRuntime(t)
	id := waiting(t, r, func(s *specs.Spec) {
		s.Linux.Resources.Pids = nil // on cgroup v2, a cgroup that delegates controllers may have no processes of its own
	})
	own := cgroupOf(t, r.State(id).Pid, "pids")
	flag, below := "pids:sub", filepath.Join("/sys/fs/cgroup/pids", own, "sub")
	if testhost.Cgroup() == testhost.CgroupV2 {
		flag, below = "sub", filepath.Join("/sys/fs/cgroup", own, "sub")
	}
	if got := r.Do("exec", "--cgroup", flag, id, "true"); got.Status != 255 {
		t.Errorf("a cgroup that is not there: %+v", got)
	}
	if err := os.Mkdir(below, 0o755); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{"": own, "--cgroup " + flag: own + "/sub"} {
		pidFile := filepath.Join(directory(t, r), "pid")
		command := append([]string{"exec", "--detach", "--pid-file", pidFile}, strings.Fields(args)...)
		r.Must(append(command, id, "sleep", "1000")...)
		text, err := os.ReadFile(pidFile)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := cgroupOf(t, pid, "pids"); got != want {
			t.Errorf("%q: it is in %s, not in %s", args, got, want)
		}
	}
}

// TestSystemdMakesTheCgroup: if systemd is there; without it such a container is refused.
func TestSystemdMakesTheCgroup(t *testing.T) {
	r := newRuntime(t)
	bundle := r.Bundle("exec sleep 1000", func(s *specs.Spec) { s.Linux.CgroupsPath = "system.slice:clove-oci-test:one" })
	r.Flags = []string{"--systemd-cgroup"}
	got := r.Do("run", "--detach", "--bundle", bundle, "one")
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		if got.Status != 1 || !strings.Contains(got.Err, "systemd not running on this host") {
			t.Errorf("without systemd: %+v", got)
		}
		return
	}
	if got.Status != 0 {
		t.Fatalf("%+v", got)
	}
	if path := cgroupOf(t, r.State("one").Pid, "pids"); path != "/system.slice/clove-oci-test-one.scope" {
		t.Errorf("it is in %s", path)
	}
	r.Must("delete", "--force", "one")
}

// cgroupOf returns the cgroup of a process, in a controller's hierarchy if there are several.
func cgroupOf(t *testing.T, pid int, controller string) string {
	t.Helper()
	table, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if fields[1] == controller || testhost.Cgroup() == testhost.CgroupV2 {
			return fields[2]
		}
	}
	t.Fatalf("no %s in %s", controller, table)
	return ""
}

// removeCgroup removes a parent cgroup that libcontainer made, in each hierarchy.
func removeCgroup(path string) {
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		found, _ := filepath.Glob(root + path)
		for _, directory := range found {
			_ = os.Remove(directory)
		}
	}
}

// file is the file of a limit in both versions of cgroups.
type file struct{ controller, v1, v2 string }

// limit returns the value that the kernel enforces on the container's first process.
func limit(t *testing.T, r *ocitest.Runtime, id string, f file) string {
	t.Helper()
	own := cgroupOf(t, r.State(id).Pid, f.controller)
	path := filepath.Join("/sys/fs/cgroup", own, f.v2)
	if testhost.Cgroup() != testhost.CgroupV2 {
		path = filepath.Join("/sys/fs/cgroup", f.controller, own, f.v1)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// TestWhatTheCallerIgnoresIsHeardInside: nohup(1) makes its program ignore SIGHUP, and
// execve(2) keeps that, but a container must not inherit it. The control is a program that
// does.
func TestWhatTheCallerIgnoresIsHeardInside(t *testing.T) {
	r := newRuntime(t)
	script := filepath.Join(r.Directory(), "ignoring")
	text := "#!/bin/sh\ntrap '' HUP INT\n[ \"$1\" = control ] && exec grep SigIgn /proc/self/status\nexec " + r.Binary + " \"$@\"\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	r.Binary = script
	hears := func(status string) bool { // bits of proc_pid_status(5), from SIGHUP and SIGINT on
		_, mask, _ := strings.Cut(status, "SigIgn:\t")
		mask, _, _ = strings.Cut(mask, "\n")
		bits, err := strconv.ParseUint(mask, 16, 64)
		return err == nil && bits&3 == 0
	}
	ignoring, err := exec.Command(script, "control").Output()
	if err != nil || hears(string(ignoring)) {
		t.Fatalf("control: %s, %v", ignoring, err)
	}
	id := waiting(t, r)
	detached, err := os.ReadFile("/proc/" + strconv.Itoa(r.State(id).Pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	for name, status := range map[string]string{
		"detached": string(detached),
		"stays":    inside(t, r, "grep SigIgn /proc/self/status"),
		"joined":   r.Must("exec", id, "grep", "SigIgn", "/proc/self/status"),
	} {
		if !hears(status) {
			t.Errorf("%s: %s", name, status)
		}
	}
}
