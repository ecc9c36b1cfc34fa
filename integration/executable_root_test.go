//go:build root

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// planted are files of the three classes, as an agent could leave them in a project that has
// none of them.
var planted = map[string][]string{
	"--allow-executable-config": {"opencode.json", "opencode.jsonc", ".opencode/plugin/x.ts", ".hg/hgrc", ".jj/repo/config.toml", ".helix/languages.toml", ".kiro/settings/mcp.json",
		".windsurf/hooks.json", ".qwen/settings.json", ".roo/mcp.json", ".amazonq/mcp.json", ".junie/mcp/mcp.json", ".trae/mcp.json", ".crush.json", ".continue/config.yaml",
		".aider.conf.yml", ".factory/hooks.json", ".augment/settings.json", "mcp.json", "x.code-workspace", "x.sublime-project", ".local.vimrc", ".ycm_extra_conf.py", ".bazelrc",
		".mvn/extensions.xml", ".env", "policies/web.yaml", "suite/suite.yaml", "results/manifest.json", ".new/run.sh", ".new/readme", ".other/servers.json"},
	"--allow-instructions": {"AGENTS.md", "sub/CLAUDE.md", "GEMINI.md", ".cursorrules"},
}

const plantScript = `cd /workspace; echo new > kept; for f; do mkdir -p "$(dirname "$f")"; echo x > "$f"; done
printf 'version: 1\nname: web\nextends: standard\nwiden: {network: x}\nnetwork: {mode: public}\n' > policies/web.yaml
echo '{"version":1,"suite":{"name":"x"}}' > results/manifest.json; chmod 755 .new/run.sh; echo '{"servers":[{"command":"sh"}]}' > .other/servers.json`

// A file that needs consent of its own is left out with --yes alone, with a message and exit code 1;
// each flag writes its classes. The control is the change of a plain file, which is always
// written, and what the flags write.
func TestApplyLeavesOutEachClass(t *testing.T) {
	h := newHost(t)
	all := slices.Concat(planted["--allow-executable-config"], planted["--allow-instructions"])
	for flags, written := range map[string][]string{
		"": nil, "--allow-executable-config": planted["--allow-executable-config"], "--allow-instructions": planted["--allow-instructions"],
		"--allow-executable-config --allow-instructions": all,
	} {
		dir := repository(t)
		if r := h.clove(append([]string{"run", "--name", "planter", "--workspace", dir, "--", "sh", "-c", plantScript, "sh"}, all...)...); r.code != 0 {
			t.Fatalf("exit %d\n%s", r.code, r.stderr)
		}
		r := h.clove(append(append([]string{"apply", "--yes"}, strings.Fields(flags)...), "planter")...)
		if (r.code == 1) != (len(written) < len(all)) || !strings.Contains(r.stdout, "C /workspace/kept\n") {
			t.Errorf("%q: exit %d\n%s", flags, r.code, r.stderr)
		}
		for flag, paths := range planted {
			if strings.Contains(r.stderr, "give "+flag) == strings.Contains(flags, flag) {
				t.Errorf("%q: a hint at %s: %s", flags, flag, r.stderr)
			}
			for _, path := range paths {
				if _, err := os.Lstat(filepath.Join(dir, path)); (err == nil) != slices.Contains(written, path) {
					t.Errorf("%q: %s on the host: %v", flags, path, err)
				}
			}
		}
		h.clove("rm", "planter")
	}
}
