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

// tree makes files (name to mode; folders end in a slash) in a new folder.
func tree(t *testing.T, files map[string]os.FileMode) string {
	t.Helper()
	root := t.TempDir()
	for name, mode := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, mode); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestLookUp(t *testing.T) {
	root := tree(t, map[string]os.FileMode{"a/tool": 0o755, "b/tool": 0o755, "a/plain": 0o644, "b/plain": 0o755,
		"a/alone": 0o644, "a/folder/": 0o755, "b/folder": 0o755, "a/onlyfolder/": 0o755})
	t.Chdir(root)
	for _, c := range []struct {
		name, command, path string
		want                string // below root; empty: a failure
		errno               syscall.Errno
		code                int
	}{
		{"first wins", "tool", "ROOT/a:ROOT/b", "ROOT/a/tool", 0, 0},
		{"order counts", "tool", "ROOT/b:ROOT/a", "ROOT/b/tool", 0, 0},
		{"slash at the end", "tool", "ROOT/a/", "ROOT/a/tool", 0, 0},
		{"passes over what is not executable", "plain", "ROOT/a:ROOT/b", "ROOT/b/plain", 0, 0},
		{"passes over folders", "folder", "ROOT/a:ROOT/b", "ROOT/b/folder", 0, 0},
		{"passes over what does not exist", "tool", "/no/such:ROOT/a/tool:ROOT/b", "ROOT/b/tool", 0, 0},
		{"empty entry", "tool", "/no/such:", "", unix.ENOENT, 127},
		{"relative entry", "tool", "a", "a/tool", 0, 0},
		{"path, whatever PATH is", "ROOT/a/tool", "", "ROOT/a/tool", 0, 0},
		{"relative path", "a/tool", "ROOT/b", "a/tool", 0, 0},
		{"only one that is not executable", "alone", "ROOT/b:ROOT/a", "", unix.EACCES, 126},
		{"only a folder", "onlyfolder", "ROOT/a", "", unix.ENOENT, 127},
		{"nowhere", "nothing", "ROOT/a:ROOT/b", "", unix.ENOENT, 127},
		{"path to nothing", "ROOT/nothing", "ROOT/a", "", unix.ENOENT, 127},
		{"path below a file", "ROOT/a/tool/x", "ROOT/a", "", unix.ENOTDIR, 127},
		{"path to a folder", "ROOT/a", "ROOT/a", "", unix.EISDIR, 126},
		{"path too long", "/" + strings.Repeat("x", 300), "", "", unix.ENAMETOOLONG, 126},
	} {
		t.Run(c.name, func(t *testing.T) {
			here := strings.NewReplacer("ROOT", root)
			got, failure := lookUp(here.Replace(c.command), []string{"A=PATH=/x", "PATH=" + here.Replace(c.path), "PATH=/second"})
			if want := here.Replace(c.want); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
			if c.code == 0 {
				if failure != nil {
					t.Error(failure)
				}
				return
			}
			if failure == nil || failure.Errno != c.errno || failure.ExitCode != c.code || failure.Step != "look up" {
				t.Errorf("failure %+v, want %v and status %d", failure, c.errno, c.code)
			}
		})
	}
}

func TestExecFailedAlwaysIs126(t *testing.T) {
	for errno, text := range map[syscall.Errno]string{
		unix.ENOENT: "interpreter", unix.ENOEXEC: "#!", unix.E2BIG: "stack limit", unix.EAGAIN: "nproc",
		unix.EPERM: "operation not permitted", // the kernel's text, without one of clove's
	} {
		got := execFailed("/bin/x", errno)
		if got.ExitCode != initproto.ExitCannotExec || got.Errno != errno || got.Step != "execve" ||
			!strings.HasPrefix(got.Message, "/bin/x: ") || !strings.Contains(got.Message, text) {
			t.Errorf("%v: %+v", errno, got)
		}
	}
}

func TestVariable(t *testing.T) {
	env := []string{"AB=1", "A", "A=", "B=x=y", "B=2"}
	for name, want := range map[string]string{"A": "", "AB": "1", "B": "x=y", "C": ""} {
		if got := variable(env, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
