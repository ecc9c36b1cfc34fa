package gitdir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// repository makes a repository at base/repo with the worktree base/wt, as git does.
func repository(t *testing.T) (base string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, base, "repo/.git/HEAD", "ref: refs/heads/main\n")
	write(t, base, "repo/.git/objects/info/packs", "")
	write(t, base, "repo/.git/refs/heads/main", "")
	write(t, base, "repo/.git/worktrees/wt/commondir", "../..\n")
	write(t, base, "repo/.git/worktrees/wt/gitdir", base+"/wt/.git\n")
	write(t, base, "wt/.git", "gitdir: "+base+"/repo/.git/worktrees/wt\n")
	return base
}

// write makes the file name below base; an empty text makes its directory only.
func write(t *testing.T, base, name, text string) {
	t.Helper()
	path := filepath.Join(base, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if text == "" {
		return
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAWorktreesRepositoryBelongs(t *testing.T) {
	t.Parallel()
	for _, relative := range []bool{false, true} {
		base := repository(t)
		inside := base + "/repo/.git"
		if relative { // git worktree add --relative-paths
			write(t, base, "wt/.git", "gitdir: ../repo/.git/worktrees/wt\n")
			write(t, base, "repo/.git/worktrees/wt/gitdir", "../../../../wt/.git\n")
			inside = "/repo/.git"
		}
		l, found := Find(base+"/wt", "")
		if !found || l.Foreign != "" || l.Common != base+"/repo/.git" || l.Inside("/workspace") != inside {
			t.Errorf("relative %v: %+v, %v, inside %s", relative, l, found, l.Inside("/workspace"))
		}
		if err := os.Symlink(base+"/wt", base+"/alias"); err != nil {
			t.Fatal(err)
		}
		if l, found := Find(base+"/alias", ""); !relative && (!found || l.Common == "") {
			t.Errorf("by a link to the folder: %+v, %v", l, found)
		}
		if err := os.Symlink(base+"/repo", base+"/other"); err != nil {
			t.Fatal(err)
		}
		write(t, base, "wt/.git", "gitdir: "+base+"/other/.git/worktrees/wt\n")
		if l, found := Find(base+"/wt", ""); !relative && (!found || l.Common != base+"/repo/.git") {
			t.Errorf("by a link to the repository: %+v, %v", l, found)
		}
	}
}

// A submodule's configuration names its folder; a separate git directory names none, so the user
// has to name it. Neither belongs to another folder whose .git leads there.
func TestARepositoryWithoutWorktrees(t *testing.T) {
	t.Parallel()
	base := repository(t)
	module := base + "/repo/.git/modules/sub"
	for name, text := range map[string]string{
		"repo/.git/modules/sub/HEAD": "ref: refs/heads/main\n", "repo/.git/modules/sub/objects/x": "x", "repo/.git/modules/sub/refs/x": "x",
		"repo/.git/modules/sub/config": "[core]\n\tworktree = ../../../sub\n", "repo/sub/.git": "gitdir: ../.git/modules/sub\n",
		"separate/HEAD": "ref: refs/heads/main\n", "separate/objects/x": "x", "separate/refs/x": "x", "folder/.git": "gitdir: " + base + "/separate\n",
		"evil/.git": "gitdir: ../repo/.git/modules/sub\n",
	} {
		write(t, base, name, text)
	}
	for _, row := range []struct{ folder, named, common, why string }{
		{"repo/sub", "", module, ""},
		{"repo/sub", module, module, ""},
		{"repo/sub", base + "/separate", "", "is not in"},
		{"folder", "", "", "does not say"},
		{"folder", base + "/separate", base + "/separate", ""},
		{"evil", "", "", "does not say"},
		{"wt", base + "/repo/.git", base + "/repo/.git", ""},
		{"wt", base + "/repo/.git/worktrees/wt", base + "/repo/.git", ""},
	} {
		l, found := Find(filepath.Join(base, row.folder), row.named)
		if !found || l.Common != row.common || !strings.Contains(l.Foreign, row.why) || row.why == "" && l.Foreign != "" {
			t.Errorf("%+v: %+v", row, l)
		}
		if row.common == module && (l.Private() != "." || l.Inside("/workspace") != "/.git/modules/sub") {
			t.Errorf("private %s, inside %s", l.Private(), l.Inside("/workspace"))
		}
	}
}

// A hostile folder, base/evil, whose author can write nothing below repo and wt. The control is
// TestAWorktreesRepositoryBelongs, which passes with each of these undone.
func TestARepositoryOfOthersDoesNotBelong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		do   func(t *testing.T, base string)
		why  string
	}{
		{"the worktree of another folder", func(t *testing.T, base string) {
			write(t, base, "evil/.git", "gitdir: "+base+"/repo/.git/worktrees/wt\n")
		}, "is another folder's"},
		{"a hard link of the other folder's file", func(t *testing.T, base string) {
			write(t, base, "evil/x", "")
			if err := os.Link(base+"/wt/.git", base+"/evil/.git"); err != nil {
				t.Fatal(err)
			}
		}, "is another folder's"},
		{"the repository itself", func(t *testing.T, base string) {
			write(t, base, "evil/.git", "gitdir: ../repo/.git\n")
		}, "does not say that it is this folder's"},
		{"a git directory of its own that names the repository", func(t *testing.T, base string) {
			write(t, base, "evil/.git", "gitdir: gd\n")
			write(t, base, "evil/gd/commondir", base+"/repo/.git\n")
			write(t, base, "evil/gd/gitdir", base+"/evil/.git\n")
		}, "is not among the worktrees of"},
		{"one below a directory named worktrees", func(t *testing.T, base string) {
			write(t, base, "evil/.git", "gitdir: r/worktrees/gd\n")
			write(t, base, "evil/r/worktrees/gd/commondir", base+"/repo/.git\n")
			write(t, base, "evil/r/worktrees/gd/gitdir", base+"/evil/.git\n")
		}, "is not among the worktrees of"},
		{"one that a link calls a worktree of the repository", func(t *testing.T, base string) {
			write(t, base, "evil/.git", "gitdir: r/worktrees/gd\n")
			write(t, base, "evil/gd/commondir", base+"/repo/.git\n")
			write(t, base, "evil/gd/gitdir", base+"/evil/.git\n")
			write(t, base, "evil/r/worktrees/x", "")
			if err := os.Symlink("../../gd", base+"/evil/r/worktrees/gd"); err != nil {
				t.Fatal(err)
			}
		}, "is not among the worktrees of"},
		{"a repository that is none", func(t *testing.T, base string) {
			write(t, base, "evil/.git", "gitdir: ../secrets/worktrees/x\n")
			write(t, base, "secrets/worktrees/x/commondir", "../..\n")
			write(t, base, "secrets/worktrees/x/gitdir", base+"/evil/.git\n")
		}, "does not look like git's"},
		{"objects that are a link", func(t *testing.T, base string) {
			write(t, base, "evil/.git", "gitdir: ../own/worktrees/x\n")
			write(t, base, "own/worktrees/x/commondir", "../..\n")
			write(t, base, "own/worktrees/x/gitdir", base+"/evil/.git\n")
			write(t, base, "own/HEAD", "ref: refs/heads/main\n")
			write(t, base, "own/refs/x", "")
			if err := os.Symlink(base+"/repo/.git/objects", base+"/own/objects"); err != nil {
				t.Fatal(err)
			}
		}, "does not look like git's"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			base := repository(t)
			tt.do(t, base)
			l, found := Find(base+"/evil", "")
			if !found || l.Common != "" || !strings.Contains(l.Foreign, tt.why) {
				t.Errorf("%+v, %v, want %q", l, found, tt.why)
			}
			if l, found := Find(base+"/wt", ""); !found || l.Common == "" {
				t.Errorf("control: %+v, %v", l, found)
			}
		})
	}
}

// A repository of another user is not taken, although it names the folder back: its owner
// may have been deceived about the folder.
func TestAnotherOwnersRepositoryDoesNotBelong(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	base := repository(t)
	if l, _ := Find(base+"/wt", ""); l.Common == "" {
		t.Fatalf("control: %+v", l)
	}
	if err := os.Chown(base+"/wt", 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if l, found := Find(base+"/wt", ""); !found || l.Common != "" || l.Foreign != "has another owner than this folder" {
		t.Errorf("%+v, %v", l, found)
	}
}

// A file that is no text with a path is not followed, and costs neither time nor memory.
func TestFilesThatAreNoLink(t *testing.T) {
	t.Parallel()
	tests := map[string]func(path string) error{
		"nothing":    func(string) error { return nil },
		"repository": func(path string) error { return os.Mkdir(path, 0o755) },
		"FIFO":       func(path string) error { return unix.Mkfifo(path, 0o644) },
		"link": func(path string) error {
			real := filepath.Join(filepath.Dir(path), "real")
			if err := os.WriteFile(real, []byte("gitdir: /x\n"), 0o644); err != nil {
				return err
			}
			return os.Symlink(real, path)
		},
		"other text": func(path string) error { return os.WriteFile(path, []byte("hello\n"), 0o644) },
		"no path":    func(path string) error { return os.WriteFile(path, []byte("gitdir: \n"), 0o644) },
		"two lines":  func(path string) error { return os.WriteFile(path, []byte("gitdir: /x\n/y\n"), 0o644) },
		"NUL":        func(path string) error { return os.WriteFile(path, []byte("gitdir: /x\x00y"), 0o644) },
		"huge": func(path string) error {
			return os.WriteFile(path, []byte("gitdir: /"+strings.Repeat("x", lineBytes)), 0o644)
		},
	}
	for name, plant := range tests {
		dir := t.TempDir()
		if err := plant(filepath.Join(dir, ".git")); err != nil {
			t.Fatal(err)
		}
		if l, found := Find(dir, ""); found {
			t.Errorf("%s: %+v", name, l)
		}
	}
	dir := t.TempDir()
	write(t, dir, ".git", "gitdir: /x\n")
	if l, found := Find(dir, ""); !found || l.Dir != "/x" || l.Common != "" {
		t.Errorf("control: %+v, %v", l, found)
	}
}
