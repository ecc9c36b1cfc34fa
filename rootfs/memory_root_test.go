//go:build root

package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// memoryGroup makes a cgroup with a memory limit and returns its directory.
func memoryGroup(t *testing.T, limit int64) string {
	t.Helper()
	parent, file := "/sys/fs/cgroup", "memory.max"
	if testhost.Cgroup() != testhost.CgroupV2 {
		file = "memory.limit_in_bytes"
		own, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(own)) {
			if _, path, ok := strings.Cut(strings.TrimSpace(line), ":memory:"); ok {
				parent = filepath.Join(parent, "memory", path)
			}
		}
	}
	dir := filepath.Join(parent, fmt.Sprintf("clove-rootfs-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Processes that the kernel killed for memory may still be ending, and a v1 cgroup has
		// no event for that.
		err := os.Remove(dir)
		for deadline := time.Now().Add(testhost.Patience(10 * time.Second)); errors.Is(err, unix.EBUSY) && time.Now().Before(deadline); err = os.Remove(dir) {
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, file), fmt.Append(nil, limit), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// An agent with little memory may fill its disk: pages of the layer are written back and
// dropped, those of a tmpfs are not.
func TestDiskIsNotMemory(t *testing.T) {
	b := newBench(t)
	const limit, written = 64 << 20, 256 << 20
	cfg := testConfig(b.dir)
	cfg.DiskBytes = 1 << 30
	cfg.Tmpfs = []Tmpfs{{Target: "/memory", SizeBytes: 1 << 30}}
	group := memoryGroup(t, limit)
	cfg.Binds = []Bind{{Source: b.mkdir("src", map[string]string{"block": strings.Repeat("x", 1<<20)}), Target: "/src"}}
	tree := b.mount(cfg)
	script := fmt.Sprintf("i=0; while [ $i -lt %d ]; do cat /src/block || exit 1; i=$((i+1)); done >", written>>20)
	if r := b.insideGroup(tree, group, script+"/tmp/large"); r.status != 0 {
		t.Errorf("writing %d bytes with %d of memory: status %d: %s", written, limit, r.status, r.out)
	}
	// Control: the same amount in memory ends the writer.
	if r := b.insideGroup(tree, group, script+"/memory/large"); r.status == 0 || !strings.Contains(r.out, "Killed") && r.status != 137 {
		t.Errorf("control: writing %d bytes to memory: status %d: %s", written, r.status, r.out)
	}
}

// insideGroup is inside for an agent in a cgroup, which it enters before its script begins.
func (b *bench) insideGroup(tree *Tree, group, script string) result {
	b.t.Helper()
	cmd, out := b.command(tree, sandboxAgent, "read go && "+script)
	start, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(cmd.Start)
	procs := filepath.Join(group, "cgroup.procs")
	if err := os.WriteFile(procs, fmt.Append(nil, cmd.Process.Pid), 0o644); err != nil {
		b.t.Error(err)
	}
	fmt.Fprintln(start, "go")
	start.Close()
	if err := cmd.Wait(); err != nil && cmd.ProcessState == nil {
		b.t.Fatal(err)
	}
	status := cmd.ProcessState.ExitCode()
	if status == -1 {
		status = 128 + int(cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	}
	return result{out.String(), status}
}
