//go:build root

package cgroups

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// roleEnv makes this test binary play a role, once a line comes on its standard input: "bomb",
// "leave" its cgroups, or use the CPU time that it names.
const roleEnv = "CLOVE_CGROUPS_ROLE"

func TestMain(m *testing.M) {
	role, isMember := os.LookupEnv(roleEnv)
	if !isMember {
		os.Exit(m.Run())
	}
	bufio.NewReader(os.Stdin).ReadString('\n')
	if role == "bomb" {
		forkForEver()
	}
	if role == "leave" {
		leave()
	}
	want, err := time.ParseDuration(role)
	if err != nil {
		panic(err)
	}
	for from := usedCPU(); usedCPU() < from+want; {
	}
}

// leave prints its cgroups afterwards.
func leave() {
	h, err := Detect()
	if err == nil {
		err = h.LeaveV1()
	}
	if err != nil {
		panic(err)
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(text)
	os.Exit(0)
}

// forkForEver never dies out, unlike a shell's bomb, whose shells end when they
// are refused a fork. Only the forking thread lives on in a child, so nothing
// but raw system calls may follow.
//
//go:norace
func forkForEver() {
	for {
		unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
}

// joinRole starts this test binary in the group.
func joinRole(t *testing.T, g *Group, role string) *member {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"="+role)
	return joinCommand(t, g, cmd)
}

func usedCPU() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// realGroup makes a new agent's group on this host, as libcontainer does: a plain mkdir of
// every path. It is killed and removed after the test.
func realGroup(t *testing.T) *Group {
	t.Helper()
	testhost.Root(t)
	testhost.NoResidue(t)
	h, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Prepare(); err != nil {
		t.Fatal(err)
	}
	g, err := Open(h.Place(string(agent.NewID())).Paths)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // by now the test's own context has ended
		if err := errors.Join(g.Thaw(), g.Kill(context.Background()), g.Remove(context.Background())); err != nil {
			t.Error(err)
		}
	})
	for _, dir := range g.dirs {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	inheritCPUSet(t, g.paths["cpuset"])
	return g
}

// inheritCPUSet copies the values that a v1 cpuset needs before it accepts a process.
func inheritCPUSet(t *testing.T, dir string) {
	t.Helper()
	if dir == "" {
		return
	}
	for _, dir := range []string{filepath.Dir(dir), dir} {
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			above, err := os.ReadFile(filepath.Join(filepath.Dir(dir), name))
			if err == nil {
				err = write(dir, name, strings.TrimSpace(string(above)))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// limit writes one limit of the group: its v1 file or its v2 file.
func (g *Group) limit(t *testing.T, controller, v1, v2, value string) {
	t.Helper()
	dir, name := g.paths[unified], v2
	if g.onV1() {
		dir, name = g.paths[controller], v1
	}
	if err := write(dir, name, value); err != nil {
		t.Fatal(err)
	}
}

func limitMemory(t *testing.T, g *Group, bytes int64) {
	t.Helper()
	g.limit(t, "memory", "memory.limit_in_bytes", "memory.max", strconv.FormatInt(bytes, 10))
	if g.onV1() && exists(g.paths["memory"], "memory.memsw.limit_in_bytes") {
		g.limit(t, "memory", "memory.memsw.limit_in_bytes", "", strconv.FormatInt(bytes, 10))
	}
	if !g.onV1() && exists(g.paths[unified], "memory.swap.max") {
		g.limit(t, "memory", "", "memory.swap.max", "0")
	}
}

// member is a process in the group that waits for a line before it begins.
type member struct {
	*exec.Cmd
	stdin io.WriteCloser
	out   *os.File
}

// join starts a shell script in the group. It first reads one line, so nothing that it does
// happens outside.
func join(t *testing.T, g *Group, script string) *member {
	t.Helper()
	return joinCommand(t, g, exec.Command("sh", "-c", "read go; "+script))
}

func joinCommand(t *testing.T, g *Group, cmd *exec.Cmd) *member {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, inherited, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = inherited
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	inherited.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // not all tests kill their group, or thaw it
		_ = cmd.Process.Kill()
		if err := g.Thaw(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
		out.Close()
	})
	for _, dir := range g.dirs {
		if err := write(dir, "cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
	}
	return &member{cmd, stdin, out}
}

func (m *member) begin(t *testing.T) {
	t.Helper()
	if _, err := fmt.Fprintln(m.stdin, "go"); err != nil {
		t.Fatal(err)
	}
}

// expectLine reads the member's next line.
func (m *member) expectLine(t *testing.T, want string) {
	t.Helper()
	m.out.SetReadDeadline(time.Now().Add(testhost.Patience(10 * time.Second)))
	text := make([]byte, len(want)+1)
	if _, err := io.ReadFull(m.out, text); err != nil || string(text) != want+"\n" {
		t.Fatalf("the member said %q (%v), want %q", text, err, want)
	}
}

// eventually polls for changes that the kernel reports on no descriptor.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testhost.Patience(10 * time.Second)); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("never came true: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// onlyTrees is the same group with some of its hierarchies only.
func (g *Group) onlyTrees(t *testing.T, keep func(controller string) bool) *Group {
	t.Helper()
	paths := maps.Clone(g.paths)
	maps.DeleteFunc(paths, func(c, _ string) bool { return !keep(c) })
	part, err := Open(paths)
	if err != nil {
		t.Fatal(err)
	}
	return part
}
