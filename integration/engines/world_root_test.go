//go:build root

package engines

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// insideVariable is set for the test binary inside a world.
const insideVariable = "CLOVE_ENGINES_WORLD"

// othersVariable names a folder of programs that come before the machine's own, to try engines
// of other versions.
const othersVariable = "CLOVE_ENGINES_BIN"

// tools are the programs of the engines' packages. All of them are checked, so that one
// message names what to install.
var tools = []string{"tini", "busybox", "dockerd", "docker", "containerd", "ctr", "podman", "conmon", "runc", "iptables", "ip", "bash"}

// lifetime bounds the life of a world, whatever hangs in it.
const lifetime = 8 * time.Minute

// inWorld runs body in a world of its own and takes over its result.
func inWorld(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	if os.Getenv(insideVariable) != "" {
		settle(t)
		body(t)
		return
	}
	testhost.Root(t)
	for _, name := range tools {
		testhost.Tool(t, name)
	}
	bin, scratch := t.TempDir(), t.TempDir()
	pack(t, bin)
	testhost.NoResidue(t, bin, scratch)
	name := fmt.Sprintf("engines-%d-%s", os.Getpid(), t.Name())
	t.Cleanup(func() { noCgroup(t, name) })
	ctx, cancel := context.WithTimeout(t.Context(), testhost.Patience(lifetime))
	defer cancel()
	script, err := filepath.Abs("../testdata/container.sh")
	if err != nil {
		t.Fatal(err)
	}
	world := exec.CommandContext(ctx, script, name, scratch, bin, "tini", "--", "env",
		insideVariable+"=1", "CI="+os.Getenv("CI"), "CLOVE_LANE="+testhost.Lane(),
		"/opt/clove/engines.test", "-test.v", "-test.run="+insidePattern(t), "-test.timeout=0",
		"-test.short="+strconv.FormatBool(testing.Short()))
	// The script itself stays, to remove the cgroups.
	world.Cancel = func() error { return killFirst(world.Process.Pid) }
	var output bytes.Buffer
	world.Stdout = io.MultiWriter(&output, t.Output())
	world.Stderr = world.Stdout
	err = world.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.Errorf("the world had to be ended after %s", testhost.Patience(lifetime))
	case err != nil:
		t.Errorf("the test failed in its world: %v", err)
	case !strings.Contains(output.String(), "--- PASS: "+t.Name()+" "):
		t.Error("the test did not run in its world")
	}
}

// insidePattern chooses this test, and those of its rows that were requested.
func insidePattern(t *testing.T) string {
	_, rows, some := strings.Cut(flag.Lookup("test.run").Value.String(), "/")
	pattern := "^" + t.Name() + "$"
	if some {
		pattern += "/" + rows
	}
	return pattern
}

// pack fills the folder that is mounted at /opt/clove in the world.
func pack(t *testing.T, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if others := os.Getenv(othersVariable); others != "" {
		if err := os.CopyFS(dir, os.DirFS(others)); err != nil {
			t.Fatal(err)
		}
	}
	programs := map[string]string{"engines.test": self}
	for _, name := range []string{"clove-oci", "clove", "cloved", "clove-init", "clove-gate"} {
		programs[name] = testhost.Binary(t, name)
	}
	for name, path := range programs {
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// killFirst ends the world's process 1, the only child of the script's only child.
func killFirst(script int) error {
	pid := script
	for range 2 {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
		if err != nil {
			return err
		}
		if _, err := fmt.Sscan(string(children), &pid); err != nil {
			return fmt.Errorf("cannot find the world's process 1: %w", err)
		}
	}
	return unix.Kill(pid, unix.SIGKILL)
}

// noCgroup fails the test if a cgroup with that name exists in any hierarchy.
func noCgroup(t *testing.T, name string) {
	t.Helper()
	err := filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
			return nil
		}
		if err == nil && entry.IsDir() && entry.Name() == name {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// settle prepares the world for engines. Cgroup v2 gives no controller to the children of a
// group with processes, so these processes move into a child.
func settle(t *testing.T) {
	t.Helper()
	if testhost.Cgroup() != testhost.CgroupV2 {
		return
	}
	const root = "/sys/fs/cgroup"
	leaf := filepath.Join(root, "world")
	if err := os.Mkdir(leaf, 0o755); err != nil {
		t.Fatal(err)
	}
	pids, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		if n, err := strconv.Atoi(pid); err != nil || n == 0 {
			t.Fatalf("process %q of the world's cgroup is none of its own", pid)
		}
		if err := os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(pid), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const controllers = "+cpu +cpuset +io +memory +pids"
	if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte(controllers), 0o644); err != nil {
		t.Fatal(err)
	}
}
