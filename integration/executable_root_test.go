//go:build root

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a git repository on the host with one file in it.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "kept"), []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "--quiet")
	gitIn(t, dir, "add", "kept")
	return dir
}

// gitIn runs git with no other configuration than the repository's own.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	git := exec.Command("git", args...)
	git.Dir, git.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	if text, err := git.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, text)
	}
}

// Files that an agent plants for git are not applied with its other changes, so git on the
// host does not execute them. The control: with --allow-executable-config it does.
func TestApplyHoldsBackWhatTheHostExecutes(t *testing.T) {
	h := newHost(t)
	for name, plant := range map[string]string{
		"a hook":     `printf '#!/bin/sh\ntouch %s\n' "$1" > .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit`,
		"fsmonitor":  `printf '[core]\n\tfsmonitor = "touch %s; false"\n' "$1" >> .git/config`,
		"repository": `cp -r .git sub; mkdir sub/tree; printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch %s; false"\n\tbare = false\n\tworktree = tree\n' "$1" > sub/config`,
	} {
		dir, mark := repository(t), filepath.Join(t.TempDir(), "executed")
		use := func() bool {
			at := dir
			if name == "repository" {
				if _, err := os.Lstat(filepath.Join(dir, "sub", "HEAD")); err != nil {
					return false // it is not a repository, so git would report an error
				}
				at = filepath.Join(dir, "sub")
			}
			gitIn(t, at, "status")
			gitIn(t, dir, "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "--allow-empty", "-m", "x")
			_, err := os.Lstat(mark)
			return err == nil
		}
		if r := h.clove("run", "--name", "planter", "--workspace", dir, "--", "sh", "-c", "cd /workspace; echo new > kept; "+plant, "sh", mark); r.code != 0 {
			t.Fatalf("exit %d\n%s", r.code, r.stderr)
		}
		r := h.clove("apply", "--yes", "planter")
		if r.code != 1 || !strings.Contains(r.stdout, "C /workspace/kept\n") || !strings.Contains(r.stdout, "(git executes it) (refused") || !strings.Contains(r.stderr, "--allow-executable-config") {
			t.Errorf("%s: exit %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
		if use() {
			t.Errorf("%s executed on the host", name)
		}
		r = h.clove("apply", "--yes", "--allow-executable-config", "planter")
		if !use() {
			t.Errorf("the control: %s that was allowed does not execute\n%s%s", name, r.stdout, r.stderr)
		}
		h.clove("rm", "planter")
	}
}
