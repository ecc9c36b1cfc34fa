//go:build root

package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awaitWritten waits until a directory has an entry, and returns its name.
func awaitWritten(t *testing.T, dir string) string {
	t.Helper()
	for deadline := time.Now().Add(patience()); ; time.Sleep(time.Millisecond) {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			return entries[0].Name()
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is written")
		}
	}
}

// TestAnInterruptedCopy: nothing is left under the final name, and nothing at all if clove
// could still clean up. The control is the complete copy.
func TestAnInterruptedCopy(t *testing.T) {
	d := newCloved(t)
	script := "dd if=/dev/zero of=/workspace/big bs=1M count=256 2>/dev/null; echo written; sleep 1000"
	if r := d.clove("run", "-d", "--name=box", "--", "sh", "-c", script); r.code != 0 {
		t.Fatal(r.stderr)
	}
	for deadline := time.Now().Add(patience()); !strings.Contains(d.clove("logs", "box").stdout, "written"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the agent does not write")
		}
	}
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGKILL} {
		dir := t.TempDir()
		ctx, cancel := context.WithTimeout(context.Background(), patience())
		cmd := d.command(ctx, "cp", "box:/workspace/big", dir)
		if err := d.begin(cmd); err != nil {
			t.Fatal(err)
		}
		first := awaitWritten(t, dir)
		cmd.Process.Signal(signal)
		cmd.Wait()
		cancel()
		if cmd.ProcessState.Success() || first == "big" {
			t.Errorf("%s: it wrote %q first, and ended with %s", unix.SignalName(signal), first, cmd.ProcessState)
		}
		left, _ := os.ReadDir(dir)
		if len(left) > 0 && (signal != unix.SIGKILL || left[0].Name() == "big") {
			t.Errorf("%s: left %v", unix.SignalName(signal), left)
		}
	}
	dir := t.TempDir()
	if r := d.clove("cp", "box:/workspace/big", dir); r.code != 0 {
		t.Errorf("control: %s", r.stderr)
	}
	if info, err := os.Stat(filepath.Join(dir, "big")); err != nil || info.Size() != 256<<20 {
		t.Errorf("control: %v, %v", info, err)
	}
}
