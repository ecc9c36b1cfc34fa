//go:build root

package integration

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// openDir makes a directory whose whole path the agents' ids may pass through.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "clove")
	if err == nil {
		err = os.Chmod(dir, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// smallDisk puts everything that the test's host writes, store, logs, layers and run
// directory, on a file system of its own.
func smallDisk(t *testing.T, kind, source, options string) string {
	t.Helper()
	testhost.Root(t)
	dir := openDir(t)
	if err := unix.Mount(source, dir, kind, 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	return dir
}

// unmount waits until nothing uses the file system: a supervisor ends a moment after its run.
func unmount(dir string) error {
	err := unix.Unmount(dir, 0)
	for began := time.Now(); err == unix.EBUSY && time.Since(began) < patience(); time.Sleep(50 * time.Millisecond) {
		err = unix.Unmount(dir, 0)
	}
	return err
}

// fill uses up a directory's file system; remove the returned file to free it.
func fill(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	return path
}

// used returns the CPU time that a process has used.
func used(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text)[strings.LastIndexByte(string(text), ')'):])
	var ticks int
	for _, field := range fields[12:14] { // proc_pid_stat(5): utime and stime
		n, _ := strconv.Atoi(field)
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// refused checks that a command failed with a clear message and a hint.
func (r result) refused(t *testing.T, words ...string) {
	t.Helper()
	if r.code == 0 || !strings.Contains(r.stderr, "hint:") {
		t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
	}
	for _, word := range words {
		if strings.Contains(r.stderr, word) {
			return
		}
	}
	t.Errorf("it says none of %q: %s", words, r.stderr)
}

// TestDiskFull: no byte is left for store, logs and run directory. Requests are refused
// clearly, the limits of live agents are enforced, and when there is space again everything
// that happened meanwhile is recorded as it was, without a restart. The control is the same
// host before and after.
func TestDiskFull(t *testing.T) {
	disk := smallDisk(t, "tmpfs", "clove-test", "size=96m,mode=711")
	d := newCloved(t)
	for i := range 12 { // leaves free pages in the store that some requests can use
		name := "gone" + strconv.Itoa(i)
		d.detach(name, "true", "--disk", "16M")
		d.clove("wait", name)
		d.ok("rm", name)
	}
	d.detach("counts", "i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done", "--disk", "16M")
	d.detach("fifth", "read x; exit 5", "-i", "--disk", "16M")
	d.detach("stopped", "sleep 1000", "--disk", "16M")
	before := d.inspect("counts")
	fifth, stopped := d.inspect("fifth").PID, d.inspect("stopped").PID
	// This comes last because its time runs; its end frees some space, and must come after the
	// requests below.
	d.detach("timed", "sleep 1000", "--timeout", testhost.Patience(5*time.Second).String(), "--disk", "16M")
	timed := d.inspect("timed").PID

	ballast := fill(t, disk)
	began, cpu, said := time.Now(), used(t, d.cmd.Process.Pid), d.said.Load()
	waits := map[string]bool{}
	for _, name := range []string{"a", "b", "c"} {
		r := d.clove("run", "-d", "--name", name, "--disk", "16M", "--", "true")
		if r.code == 0 && strings.Contains(r.stderr, "is tried again: there is no space left") {
			waits[name] = true // there was a free page in the store for the request, and none for the start
			continue
		}
		r.refused(t, "space")
	}
	if listed := d.ok("ps"); !strings.Contains(listed, "counts") {
		t.Errorf("ps: %s", listed)
	}
	d.ok("top", "counts")
	d.cloveWith("\n", "attach", "fifth") // it reads a line, and ends
	d.clove("stop", "-t", "0s", "stopped")
	for name, pid := range map[string]int{"timed": timed, "fifth": fifth, "stopped": stopped} {
		if !exits(t, pid, patience()) {
			t.Errorf("%s outlives its end", name)
		}
	}
	if lines := d.said.Load() - said; lines > 60 {
		t.Errorf("cloved says %d lines about it", lines)
	}
	if spent, took := used(t, d.cmd.Process.Pid)-cpu, time.Since(began); spent > took/2 {
		t.Errorf("cloved computes %v of %v", spent, took)
	}

	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for name, code := range map[string]int{"timed": agent.ExitTimeout, "fifth": 5, "stopped": agent.ExitKilled} {
		if r := d.clove("wait", name); r.code != code {
			t.Errorf("%s: %d, %s", name, r.code, r.stderr)
		}
	}
	if after := d.inspect("counts"); after.State != agent.StateRunning || after.PID != before.PID {
		t.Errorf("%+v", after)
	}
	d.detach("later", "exit 3", "--disk", "16M")
	if r := d.clove("wait", "later"); r.code != 3 {
		t.Errorf("with space again: %d, %s", r.code, r.stderr)
	}
	for _, name := range []string{"a", "b", "c"} { // reported as failed: at most the record exists
		if waits[name] {
			// Of the attempts while the disk is full, one may find room for its record.
			r := d.clove("wait", name)
			if failure := d.inspect(name).Record.Error; r.code != 0 && (failure == nil || !strings.Contains(failure.Message, "space")) {
				t.Errorf("%s was to be tried again: %d, %s, %+v", name, r.code, r.stderr, failure)
			}
			continue
		}
		if r := d.clove("inspect", name); r.code != 0 {
			continue
		}
		d.clove("wait", name)
		if run := d.inspect(name); run.State != agent.StateEnded || run.Record.Status != agent.StatusStartFailed {
			t.Errorf("%s was refused and is %s, %+v", name, run.State, run.Record)
		}
	}
}

// ext4 makes an image with a file system and mounts it.
func ext4(t *testing.T, image, features, options string) (mount func()) {
	t.Helper()
	file, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Truncate(96<<20), file.Close()); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", features, image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs: %v\n%s", err, out)
	}
	dir := openDir(t)
	mounted := false
	mount = func() {
		if mounted {
			if err := unmount(dir); err != nil {
				t.Fatalf("unmount: %v", err)
			}
		}
		if out, err := exec.Command("mount", "-o", "loop,"+options, image, dir).CombinedOutput(); err != nil {
			t.Fatalf("mount: %v\n%s", err, out)
		}
		mounted = true
	}
	mount()
	t.Cleanup(func() {
		if err := unmount(dir); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir)
	return mount
}

// TestDiskReadOnly: ext4 has found an error and forbids writing. Requests are refused clearly,
// the deadline kills, and once the file system is mounted again the next cloved has the right
// records.
func TestDiskReadOnly(t *testing.T) {
	run := openDir(t) // on another file system than the state, as on every host
	testhost.Root(t)
	again := ext4(t, filepath.Join(t.TempDir(), "image"), "has_journal", "errors=remount-ro")
	d := newClovedIn(t, run)
	d.detach("waits", "true", "--delay", "1h")
	disk := os.Getenv("TMPDIR")
	// The two lines follow each other directly: at the deadline, the disk must accept no
	// record.
	d.detach("timed", "sleep 1000", "--timeout", "2s", "--disk", "16M")
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT, "abort"); err != nil {
		t.Fatal(err)
	}
	timed := d.inspect("timed").PID
	d.clove("run", "-d", "--name", "refused", "--", "true").refused(t, "read-only")
	d.clove("rename", "waits", "other").refused(t, "read-only")
	if listed := d.ok("ps"); !strings.Contains(listed, "timed") {
		t.Errorf("ps: %s", listed)
	}
	if !exits(t, timed, patience()) {
		t.Error("the deadline does not kill")
	}
	waitSupervisor(t, d, "timed")
	d.stop(unix.SIGTERM)
	again()
	d.serve()
	if r := d.clove("wait", "timed"); r.code != agent.ExitTimeout {
		t.Errorf("the deadline: %d, %s", r.code, r.stderr)
	}
	if r := d.clove("inspect", "refused"); r.code == 0 {
		t.Errorf("what was refused is there: %s", r.stdout)
	}
	d.ok("rename", "waits", "other")
}

// waitSupervisor waits until no process has a run's files open.
func waitSupervisor(t *testing.T, d *cloved, name string) {
	t.Helper()
	if lease := d.inspect(name).Lease; lease != nil && !exits(t, lease.SupervisorPID, patience()) {
		t.Errorf("the supervisor of %s does not end", name)
	}
}

// TestDiskError: writes do not reach the disk (EIO), because the device below the file system
// has no space left. Only what is on the disk is acknowledged, and everything works again when
// the device does.
func TestDiskError(t *testing.T) {
	below := smallDisk(t, "tmpfs", "clove-test", "size=64m,mode=711")
	ext4(t, filepath.Join(below, "image"), "^has_journal", "errors=continue")
	d := newCloved(t)
	d.detach("lives", "sleep 1000", "--disk", "16M")
	pid := d.inspect("lives").PID
	unix.Sync()
	ballast := fill(t, below)
	failed := 0
	var stored []string
	for i := range 40 {
		name := "n" + strconv.Itoa(i)
		if r := d.clove("run", "-d", "--name", name, "--delay", "1h", "--disk", "16M", "--", "true"); r.code != 0 {
			r.refused(t, "error", "space")
			failed++
			continue
		}
		stored = append(stored, name)
	}
	if failed == 0 {
		t.Error("control: the disk takes everything")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	d.ok("run", "-d", "--name", "after", "--delay", "1h", "--disk", "16M", "--", "true")
	for _, name := range append(stored, "after") {
		if r := d.clove("inspect", name); r.code != 0 {
			t.Errorf("%s was acknowledged: %s", name, r.stderr)
		}
	}
	if lives := d.inspect("lives"); lives.State != agent.StateRunning || lives.PID != pid {
		t.Errorf("%+v", lives)
	}
	d.stop(unix.SIGKILL)
	d.serve()
	if r := d.clove("check"); r.code != 0 {
		t.Errorf("check: %s%s", r.stdout, r.stderr)
	}
}
