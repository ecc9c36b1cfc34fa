//go:build root

package rootfs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/testhost"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// bench is a place to build roots: a thread of its own, and a directory that a process with
// the sandbox's ids may pass through.
type bench struct {
	t      *testing.T
	thread *nsthread.Thread
	dir    string
	hostID uint32 // of the range that commands run with
}

// newBench also checks that the test leaves nothing behind.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir := benchDir(t)
	testhost.NoResidue(t, filepath.Join(dir, "run"), filepath.Join(dir, "state/layers"))
	thread, err := nsthread.Start(unix.CLONE_NEWNS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(thread.Close)
	return &bench{t, thread, dir, testHostID}
}

// benchDir makes the directories of a bench on a disk, because /tmp may be a tmpfs.
func benchDir(t testing.TB) string {
	t.Helper()
	testhost.Root(t)
	dir, err := os.MkdirTemp("/var/tmp", "clove-rootfs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, name := range []string{"", "run", "state", "state/layers", "ws"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o711); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o711); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openFiles(t *testing.T) []string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, e := range entries {
		target, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasPrefix(target, "anon_inode") { // belongs to the Go runtime
			open = append(open, target)
		}
	}
	return open
}

// mountsBelow lists the mounts of the calling thread's namespace below dir.
func mountsBelow(t *testing.T, dir string) []string {
	table, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	mounts, err := mountinfo.GetMountsFromReader(table, mountinfo.PrefixFilter(dir))
	if err != nil {
		t.Fatal(err)
	}
	var points []string
	for _, m := range mounts {
		points = append(points, m.Mountpoint)
	}
	return points
}

// loops lists the loop devices whose files lie below dir.
func loops(dir string) []string {
	files, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var attached []string
	for _, f := range files {
		if name, err := os.ReadFile(f); err == nil && strings.HasPrefix(string(name), dir) {
			attached = append(attached, f)
		}
	}
	return attached
}

// waitForNoLoop polls: the kernel detaches the device after its last user, without an event.
func waitForNoLoop(t *testing.T, dir string) {
	t.Helper()
	deadline := time.Now().Add(testhost.Patience(10 * time.Second))
	for left := loops(dir); len(left) > 0; left = loops(dir) {
		if time.Now().After(deadline) {
			t.Errorf("loop devices are left: %q", left)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// do runs f on the bench's thread.
func (b *bench) do(f func() error) {
	b.t.Helper()
	if err := b.thread.Do(f); err != nil {
		b.t.Fatal(err)
	}
}

// mount builds the root of cfg, which is discarded at the end of the test.
func (b *bench) mount(cfg Config) *Tree {
	b.t.Helper()
	tree, err := b.tryMount(cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { b.do(tree.Discard) })
	return tree
}

func (b *bench) tryMount(cfg Config) (tree *Tree, err error) {
	err = b.thread.Do(func() error {
		plan, err := NewPlan(cfg)
		if err == nil {
			tree, err = plan.Mount()
		}
		return err
	})
	return tree, err
}

// mkdir makes a directory in the bench, with files in it.
func (b *bench) mkdir(name string, files map[string]string) string {
	b.t.Helper()
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	for file, data := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	return dir
}

// result is the result of a command in the sandbox.
type result struct {
	out    string
	status int
}

// command is a shell script that runs as uid in the root: in a user namespace with the ids of
// the sandbox.
func (b *bench) command(tree *Tree, uid uint32, script string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.Stdout, cmd.Stderr = &out, &out
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(b.hostID), Size: idsPerAgent}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: ids, GidMappings: ids,
		GidMappingsEnableSetgroups: true, Chroot: tree.Root,
		Credential: &syscall.Credential{Uid: uid, Gid: uid},
	}
	return cmd, &out
}

// inside runs a script in the root and waits for it.
func (b *bench) inside(tree *Tree, uid uint32, script string) result {
	b.t.Helper()
	cmd, out := b.command(tree, uid, script)
	err := b.thread.Do(cmd.Run)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatalf("cannot run in the sandbox: %v", err)
	}
	return result{out.String(), cmd.ProcessState.ExitCode()}
}

// must runs a script that has to succeed.
func (b *bench) must(tree *Tree, uid uint32, script string) string {
	b.t.Helper()
	r := b.inside(tree, uid, script)
	if r.status != 0 {
		b.t.Fatalf("uid %d: %s\nstatus %d: %s", uid, script, r.status, r.out)
	}
	return r.out
}

// refused runs a script that has to fail with the text of an error number.
func (b *bench) refused(tree *Tree, uid uint32, script, want string) {
	b.t.Helper()
	r := b.inside(tree, uid, script)
	if r.status == 0 || !strings.Contains(r.out, want) {
		b.t.Errorf("uid %d: %s\nstatus %d, want a failure with %q: %s", uid, script, r.status, want, r.out)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	slices.Sort(all)
	return all
}

// diff runs on the bench's thread, because the lower directories may be visible only there.
func (b *bench) diff(uppers []Upper) []string {
	b.t.Helper()
	var lines []string
	b.do(func() error {
		changes, err := Diff(b.t.Context(), uppers, Access{})
		for _, c := range changes {
			lines = append(lines, fmt.Sprint(c))
		}
		return err
	})
	return lines
}

// hostCommand runs a command outside of any sandbox.
func hostCommand(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	return string(out), err
}
