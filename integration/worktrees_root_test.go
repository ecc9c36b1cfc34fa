//go:build root

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/internal/testhost"
)

// shownFlag is the flag that `clove run` names for the repository of a worktree.
var shownFlag = regexp.MustCompile(`hint: -v (\S+) lets it read`)

// tryGit runs git on the host, with no configuration of the host's, and returns what it writes.
func tryGit(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	git := exec.Command(testhost.Tool(t, "git"), append([]string{"-c", "user.name=u", "-c", "user.email=u@host"}, args...)...)
	git.Dir, git.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := git.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func gitOut(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := tryGit(t, dir, args...)
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return out
}

// pull takes the commits of clone n into worktree n, as docs/apply.md has it.
func pull(t *testing.T, base, n string) (string, error) {
	t.Helper()
	return tryGit(t, base+"/w"+n, "-c", "fetch.fsckObjects=true", "pull", "-q", "--ff-only", base+"/c"+n, "w"+n)
}

// committed makes a repository with one commit and n worktrees beside it, w1 on branch w1 and so on.
func committed(t *testing.T, n int) (base string) {
	t.Helper()
	base = t.TempDir()
	gitOut(t, base, "init", "-q", "repo")
	gitOut(t, base+"/repo", "commit", "-q", "--allow-empty", "-m", "first")
	for i := range n {
		gitOut(t, base+"/repo", "worktree", "add", "-q", fmt.Sprintf("../w%d", i+1))
	}
	return base
}

// commits is an agent that commits a new file.
const commits = `git config --global user.name agent; git config --global user.email agent@inside
echo "$1" >"file-$1" && git add . && git commit -qm "from $1"`

// The flag that clove names lets git read the worktree's repository and write nothing of it.
func TestTheNamedFlagShowsAWorktreesRepository(t *testing.T) {
	h := newHost(t)
	base := committed(t, 1)
	workspace := []string{"--workspace", base + "/w1"}
	without := h.agent(workspace, "git", "log", "--format=%s")
	flag := shownFlag.FindStringSubmatch(without.stderr)
	if without.code != 128 || !strings.Contains(without.stderr, "git does not work inside") || flag == nil {
		t.Fatalf("control: %d, %s%s", without.code, without.stdout, without.stderr)
	}
	before := gitOut(t, base+"/repo", "for-each-ref")
	workspace = append(workspace, "-v", flag[1])
	if r := h.agent(workspace, "git", "log", "--format=%s"); r.code != 0 || r.stdout != "first\n" || r.stderr != "" {
		t.Errorf("%d, %q, %s", r.code, r.stdout, r.stderr)
	}
	if r := h.agent(workspace, "sh", "-c", commits, "sh", "1"); r.code == 0 {
		t.Error("the agent committed into a repository that is shown read-only")
	}
	if now := gitOut(t, base+"/repo", "for-each-ref"); now != before {
		t.Errorf("the host's refs were %s, and are %s", before, now)
	}
}

// Three agents at once, each in a clone of a worktree of its own: no commit is lost, and a branch
// that moved meanwhile is not overwritten.
func TestAgentsInClonesOfWorktrees(t *testing.T) {
	h := newHost(t)
	base := committed(t, 3)
	var agents sync.WaitGroup
	for i := range 3 {
		n := fmt.Sprint(i + 1)
		gitOut(t, base, "clone", "-q", "w"+n, "c"+n)
		agents.Go(func() {
			r := h.clove("run", "--name", "a"+n, "--workspace", filepath.Join(base, "c"+n), "--", "sh", "-c", commits, "sh", n)
			if r.code != 0 || strings.Contains(r.stderr, "git does not work") {
				t.Errorf("agent %s: %d, %s", n, r.code, r.stderr)
			}
		})
	}
	agents.Wait()
	gitOut(t, base+"/w3", "commit", "-q", "--allow-empty", "-m", "meanwhile")
	for i := range 3 {
		n := fmt.Sprint(i + 1)
		if r := h.clove("apply", "--yes", "a"+n); r.code != 0 {
			t.Errorf("apply of %s: %d, %s%s", n, r.code, r.stdout, r.stderr)
		}
		if i < 2 {
			if out, err := pull(t, base, n); err != nil {
				t.Errorf("pull of %s: %v, %s", n, err, out)
			}
			if got := gitOut(t, base+"/w"+n, "log", "-1", "--format=%s"); got != "from "+n {
				t.Errorf("w%s is at %q", n, got)
			}
			if got := gitOut(t, base+"/w"+n, "status", "--short"); got != "" {
				t.Errorf("w%s is not clean: %s", n, got)
			}
		}
		h.clove("rm", "a"+n)
	}
	if out, err := pull(t, base, "3"); err == nil {
		t.Errorf("a branch that moved was overwritten: %s", out)
	}
	if got := gitOut(t, base+"/c3", "log", "-1", "--format=%s"); got != "from 3" {
		t.Errorf("the commit of the third is lost: %q", got)
	}
	gitOut(t, base+"/repo", "fsck", "--strict")
}

// An agent makes a tree with a file .git, which git never makes, and applies it with the rest.
func TestAHostileTreeIsNotPulled(t *testing.T) {
	h := newHost(t)
	base := committed(t, 1)
	gitOut(t, base, "clone", "-q", "w1", "c1")
	const plants = `git config --global user.name a; git config --global user.email a@b
blob=$(echo evil | git hash-object -w --stdin) &&
tree=$(printf "100644 .git\0$(echo $blob | sed 's/../\\x&/g')" | git hash-object -t tree --literally -w --stdin) &&
git update-ref HEAD $(git commit-tree $tree -p HEAD -m evil)`
	if r := h.clove("run", "--name", "evil", "--workspace", base+"/c1", "--", "bash", "-c", plants); r.code != 0 {
		t.Fatalf("%d, %s", r.code, r.stderr)
	}
	if r := h.clove("apply", "--yes", "evil"); r.code != 0 {
		t.Fatalf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	h.clove("rm", "evil")
	if out, err := pull(t, base, "1"); err == nil || !strings.Contains(out, "hasDotgit") {
		t.Errorf("%v, %s", err, out)
	}
	if got := gitOut(t, base+"/w1", "log", "-1", "--format=%s"); got != "first" {
		t.Errorf("the worktree is at %q", got)
	}
	if out, err := tryGit(t, base+"/w1", "fetch", "-q", base+"/c1", "w1"); err != nil {
		t.Errorf("control: without the check git takes it not either: %s", out)
	}
}
