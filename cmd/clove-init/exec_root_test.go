//go:build root

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// TestExecFailures: each failure names its step and errno, and clove writes nothing to the
// agent's output.
func TestExecFailures(t *testing.T) {
	folder := publicFolder(t)
	put(t, folder+"/plain", "echo no\n", 0o644)
	put(t, folder+"/noformat", "echo no\n", 0o755)
	put(t, folder+"/lost", "#!/no/such/interpreter\n", 0o755)
	put(t, folder+"/secret/tool", "#!/bin/sh\n", 0o755)
	check(t, unix.Chmod(folder+"/secret", 0o700))
	big := strings.Repeat("x", 100<<10)
	for _, c := range []struct {
		name   string
		change func(*initproto.Orders)
		step   string
		errno  syscall.Errno
		code   int
		text   string
	}{
		{"no such path", argv(folder + "/none"), "look up", unix.ENOENT, 127, "/none: no such file"},
		{"no such name", argv("no-such-tool"), "look up", unix.ENOENT, 127, "not found in the sandbox's PATH"},
		{"no PATH", func(o *initproto.Orders) { o.Argv, o.Env = initproto.Strings{"sh"}, nil }, "look up", unix.ENOENT, 127, "PATH"},
		{"below a file", argv("/bin/sh/x"), "look up", unix.ENOTDIR, 127, "not a directory"},
		{"not executable", argv(folder + "/plain"), "look up", unix.EACCES, 126, "permission denied"},
		{"not executable in PATH", argv("plain"), "look up", unix.EACCES, 126, folder + "/plain: permission denied"},
		{"out of reach", argv(folder + "/secret/tool"), "look up", unix.EACCES, 126, "permission denied"},
		{"a folder", argv("/usr"), "look up", unix.EISDIR, 126, "is a directory"},
		{"no format", argv("noformat"), "execve", unix.ENOEXEC, 126, "begins with #!"},
		{"no interpreter", argv("lost"), "execve", unix.ENOENT, 126, "interpreter"},
		{"too long", func(o *initproto.Orders) {
			o.Argv = append(o.Argv, big, big, big)
			o.Rlimits = append(o.Rlimits, initproto.Rlimit{Name: "stack", Soft: 1 << 20, Hard: 1 << 20})
		}, "execve", unix.E2BIG, 126, "stack limit"},
		// Without limits on address space and data: without memory, Go could not report the
		// failure.
		{"no format, no room", func(o *initproto.Orders) {
			o.Argv = initproto.Strings{"noformat"}
			o.Rlimits = []initproto.Rlimit{{Name: "stack"}, {Name: "nofile"}, {Name: "nproc"}}
		}, "execve", 0, 126, ""},
		{"no folder", func(o *initproto.Orders) { o.Dir = "/no/such" }, "chdir", unix.ENOENT, 125, "/no/such"},
		{"folder out of reach", func(o *initproto.Orders) { o.Dir = folder + "/secret" }, "chdir", unix.EACCES, 125, "secret"},
		{"limit above the host's", func(o *initproto.Orders) {
			o.Rlimits = []initproto.Rlimit{{Name: "nofile", Soft: 1, Hard: 1 << 40}}
		}, "rlimit nofile", unix.EPERM, 125, "hard 1099511627776"},
		{"capability that PID 1 lacks", func(o *initproto.Orders) { o.Caps = []string{"CAP_SYS_ADMIN"} }, "capabilities", unix.EPERM, 125, ""},
		{"orders that make no sense", func(o *initproto.Orders) { o.UID = initUID }, "orders", 0, 125, "65533"},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders := command("/bin/true")
			orders.Env = initproto.Strings{defaultPath + ":" + folder}
			c.change(&orders)
			b := startWith(t, orders, nil)
			got := b.failed()
			if got.Step != c.step || got.ExitCode != c.code || (c.errno != 0 && got.Errno != c.errno) {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(got.Message, c.text) {
				t.Errorf("message %q lacks %q", got.Message, c.text)
			}
			b.await()
			if text := b.text() + b.errors(); text != "" {
				t.Errorf("the agent's own output got %q", text)
			}
		})
	}
}

func argv(args ...string) func(*initproto.Orders) {
	return func(o *initproto.Orders) { o.Argv = args }
}

// TestCommandIsFound is the control: valid commands start.
func TestCommandIsFound(t *testing.T) {
	folder := publicFolder(t)
	put(t, folder+"/tool", "#!/bin/sh\necho tool $0 $1 in $PWD\n", 0o755)
	put(t, folder+"/bin/true/x", "", 0o644) // a folder with the name of a tool is skipped
	for name, c := range map[string]struct{ command, path, dir, want string }{
		"by path":         {folder + "/tool", "", "/", "tool " + folder + "/tool x in /\n"},
		"in PATH":         {"tool", "/no/such:" + folder, "/", "tool " + folder + "/tool x in /\n"},
		"relative":        {"./tool", "", folder, "tool ./tool x in " + folder + "\n"},
		"empty PATH part": {"tool", "/no/such:", folder, "tool ./tool x in " + folder + "\n"},
		"folder in PATH":  {"true", folder + "/bin:/bin", "/", ""},
	} {
		t.Run(name, func(t *testing.T) {
			orders := command(c.command, "x")
			orders.Env, orders.Dir = initproto.Strings{"PATH=" + c.path}, c.dir
			if got := runs(t, orders); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// publicFolder makes a folder of the host that the sandbox's ids may enter. (The sandbox's
// /tmp is another one.)
func publicFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "clove-init-test-")
	check(t, err)
	t.Cleanup(func() { check(t, os.RemoveAll(folder)) })
	check(t, os.Chmod(folder, 0o755))
	return folder
}

func put(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path, []byte(content), mode))
	check(t, os.Chmod(path, mode))
}
