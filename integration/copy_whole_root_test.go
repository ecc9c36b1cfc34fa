//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A copy is the file that it was: with its holes in both directions, on a disk that has no room for
// them, and with its permissions whatever the umask. What is refused is refused for its own reason.
func TestACopyIsTheFileThatItWas(t *testing.T) {
	d := newCloved(t)
	d.detach("box", `cd /workspace; truncate -s 3G holed; printf data | dd of=holed bs=1 seek=1G conv=notrunc 2>/dev/null
mkdir dir; echo a >dir/open; chmod 666 dir/open; chmod 777 dir; mkfifo pipe; truncate -s 2T huge; mkdir taken; echo ready; sleep 1000`, "--disk", "64M")
	d.follow("logs", "-f", "box").line()
	to := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o077))
	d.ok("cp", "box:/workspace/holed", to)
	d.ok("cp", "box:/workspace/dir", to)
	data := make([]byte, 6)
	holed, err := os.Open(filepath.Join(to, "holed"))
	if err != nil {
		t.Fatal(err)
	}
	defer holed.Close()
	info, _ := holed.Stat()
	if _, err := holed.ReadAt(data, 1<<30-1); err != nil || string(data) != "\x00data\x00" || info.Size() != 3<<30 || info.Sys().(*syscall.Stat_t).Blocks > 64 {
		t.Errorf("%q, %v, %d bytes, %d blocks", data, err, info.Size(), info.Sys().(*syscall.Stat_t).Blocks)
	}
	for name, mode := range map[string]os.FileMode{"dir": os.ModeDir | 0o777, "dir/open": 0o666} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	d.ok("cp", filepath.Join(to, "holed"), "box:/workspace/back")
	if text := d.ok("exec", "box", "--", "sh", "-c", "stat -c %s /workspace/back; dd if=/workspace/back bs=1 skip=1G count=4 2>/dev/null"); text != "3221225472\ndata" {
		t.Errorf("%q", text)
	}
	// The control: the same bytes without holes do not fit.
	if r := d.clove("exec", "box", "--", "sh", "-c", "cat /workspace/back >/workspace/dense"); r.code == 0 {
		t.Errorf("%+v", r)
	}
	d.ok("exec", "box", "--", "rm", "/workspace/dense")
	file, folder := filepath.Join(to, "taken"), filepath.Join(to, "sub/holed")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ from, to, want string }{
		{"box:/workspace/pipe", to, "it is a pipe"},
		{"box:/workspace/huge", to, "it has too many holes"},
		{"box:/workspace/none", to, "no such file or directory"},
		{file, "box:/workspace/", "is a directory"},
		{folder, "box:/workspace/", "not a directory"},
		{file, "box:/usr/bin/", "permission denied"},
	} {
		if r := d.clove("cp", row.from, row.to); r.code == 0 || !strings.Contains(r.stderr, row.want) {
			t.Errorf("%s to %s: %+v", row.from, row.to, r)
		}
	}
	// A folder that was refused is not unpacked elsewhere.
	if text := d.ok("exec", "box", "--", "ls", "/workspace"); strings.Contains(text, "in\n") {
		t.Errorf("%s", text)
	}
}

// Output that a full disk does not take: the agent goes on, its record is its own, and the command
// says it once. The controls are a whole output, and an agent with a status of its own.
func TestOutputOnAFullDisk(t *testing.T) {
	h := newHost(t)
	for _, row := range []struct {
		to, script string
		code       int
		lost       bool
	}{{"/dev/full", "echo a; echo b", 1, true}, {"/dev/full", "echo a; exit 3", 3, true}, {"/dev/null", "echo a", 0, false}} {
		record := filepath.Join(t.TempDir(), "record")
		ctx := t.Context()
		cmd := h.command(ctx, "run", "--rm", "--result", record, "--", "sh", "-c", row.script)
		out, err := os.OpenFile(row.to, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		var said output
		cmd.Stdout, cmd.Stderr = out, &said
		_ = cmd.Run() // its status is compared below
		out.Close()
		own := row.code
		if own == 1 {
			own = 0
		}
		if lost := strings.Count(said.String(), "output was lost"); cmd.ProcessState.ExitCode() != row.code || (lost == 1) != row.lost || lost > 1 || readRecord(t, record).ExitCode != own {
			t.Errorf("%+v: %d, %s", row, cmd.ProcessState.ExitCode(), said.String())
		}
	}
}
