//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A tool in the caller's home is not inside, and the error names the flag that shows it. With the flag
// it runs, and what the agent changes stays inside; also for a member, who gets nothing that is
// only root's. The control is root with the same folder.
func TestHomeDirs(t *testing.T) {
	d := newClovedFor(t, groupName)
	home := userDir(t, nil)
	t.Setenv("HOME", home)
	for name, mode := range map[string]os.FileMode{".cargo/bin/cargo": 0o755, ".cargo/roots": 0o600, "go/credentials.json": 0o600} {
		at := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("#!/bin/sh\necho built\n"), mode); err != nil {
			t.Fatal(err)
		}
		if name != ".cargo/roots" {
			if err := os.Chown(at, memberUID, memberUID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Chown(filepath.Join(home, ".cargo"), memberUID, memberUID); err != nil {
		t.Fatal(err)
	}
	const script = "cargo; touch ~/.cargo/more && cat ~/.cargo/roots"
	for name, h := range map[string]*host{"root": d.host, "member": d.member()} {
		if r := h.clove("run", "--", "sh", "-c", "cargo build"); r.code != 127 || !strings.Contains(r.stderr, "--home-dir .cargo shows it") {
			t.Errorf("%s: %d, %s", name, r.code, r.stderr)
		}
		r := h.clove("run", "--rm", "--user", "root", "--home-dir", ".cargo", "--", "sh", "-c", script)
		if !strings.HasPrefix(r.stdout, "built\n") || (r.code == 0) != (name == "root") || name == "member" && !strings.Contains(r.stderr, "roots: Permission denied") {
			t.Errorf("%s: %d, %q, %s", name, r.code, r.stdout, r.stderr)
		}
		if r := h.clove("run", "--home-dir", "go", "--", "true"); r.code != 125 || !strings.Contains(r.stderr, "credentials.json") {
			t.Errorf("%s: %d, %s", name, r.code, r.stderr)
		}
		if _, err := os.Lstat(filepath.Join(home, ".cargo/more")); err == nil {
			t.Errorf("%s: the host's folder was changed", name)
		}
	}
}
