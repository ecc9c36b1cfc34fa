//go:build root

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/internal/testhost"
)

// tryGit runs git on the host, with no configuration of the host's, and returns what it writes.
func tryGit(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	git := exec.Command(testhost.Tool(t, "git"), append([]string{"-c", "user.name=u", "-c", "user.email=u@host", "-c", "safe.directory=*"}, args...)...)
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

// identity lets an agent commit.
const identity = "git config --global user.name agent; git config --global user.email agent@inside\n"

// commits is an agent that commits a new file.
const commits = identity + `echo "$1" >"file-$1" && git add . && git commit -qm "from $1"`

// Three agents at once, each in a worktree of one repository: no commit is lost, and a branch that
// moved meanwhile is not overwritten.
func TestAgentsInWorktrees(t *testing.T) {
	h := newHost(t)
	base := committed(t, 3)
	var agents sync.WaitGroup
	for i := range 3 {
		n := fmt.Sprint(i + 1)
		agents.Go(func() {
			r := h.clove("run", "--name", "a"+n, "--workspace", filepath.Join(base, "w"+n), "--", "sh", "-c",
				commits+`; git gc -q; git branch -q "side-$1"; git status --short; git log --format=%s`, "sh", n)
			if r.code != 0 || r.stderr != "" || r.stdout != "from "+n+"\nfirst\n" {
				t.Errorf("agent %s: %d, %s%s", n, r.code, r.stdout, r.stderr)
			}
		})
	}
	agents.Wait()
	gitOut(t, base+"/w3", "commit", "-q", "--allow-empty", "-m", "meanwhile")
	gitOut(t, base+"/repo", "gc", "-q", "--prune=now")
	var applies sync.WaitGroup
	for i := range 3 {
		n := fmt.Sprint(i + 1)
		applies.Go(func() {
			if r := h.clove("apply", "--yes", "a"+n); (r.code == 0) != (i < 2) || i == 2 && !strings.Contains(r.stdout, "it has moved on the host since; nothing is lost: git merge ") {
				t.Errorf("apply of %s: %d, %s%s", n, r.code, r.stdout, r.stderr)
			}
		})
	}
	applies.Wait()
	for i, want := range []string{"from 1", "from 2", "meanwhile"} {
		dir := fmt.Sprintf("%s/w%d", base, i+1)
		if got := gitOut(t, dir, "log", "-1", "--format=%s"); got != want {
			t.Errorf("%s is at %q", dir, got)
		}
		if got := gitOut(t, dir, "status", "--short"); i < 2 && got != "" {
			t.Errorf("%s is not clean: %s", dir, got)
		}
	}
	r := h.clove("diff", "a3")
	_, tip, _ := strings.Cut(r.stdout, "refs/heads/w3 -> ")
	gitOut(t, base+"/w3", "clean", "-qf")
	gitOut(t, base+"/w3", "merge", "-q", "--no-edit", strings.Fields(tip)[0])
	if got := gitOut(t, base+"/w3", "log", "--format=%s"); !strings.Contains(got, "from 3") || !strings.Contains(got, "meanwhile") {
		t.Errorf("w3 has %s", got)
	}
	gitOut(t, base+"/repo", "fsck", "--strict")
	if got := gitOut(t, base+"/repo", "for-each-ref", "--format=%(refname:short)"); len(strings.Fields(got)) != 4 {
		t.Errorf("refs: %s", got)
	}
	if left, err := filepath.Glob(base + "/repo/.git/objects/tmp_*"); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
	for _, n := range []string{"1", "2", "3"} {
		h.clove("rm", "a"+n)
	}
}

// An agent plants what git of the host would execute or obey. The control is the same agent in an
// ordinary repository, applied with all consent: there each of them comes to the host.
func TestOnlyTheBranchOfAWorktreeIsApplied(t *testing.T) {
	h := newHost(t)
	const plants = commits + `
new=$(git rev-parse HEAD); old=$(git rev-parse HEAD~); common=$(git rev-parse --git-common-dir); cd "$common"; mkdir -p hooks info objects/info
git update-ref refs/heads/other $new; git update-ref refs/tags/planted $new; git update-ref refs/replace/$old $new
git config core.fsmonitor "touch $2; false"; echo '* filter=planted' >info/attributes
[ -d shared-objects ] || echo /nowhere >objects/info/alternates
printf '#!/bin/sh\ntouch %s\n' "$2" >hooks/reference-transaction; cp hooks/reference-transaction hooks/post-index-change; chmod 755 hooks/*`
	planted := func(dir string) (found []string) {
		for _, name := range []string{"hooks/reference-transaction", "hooks/post-index-change", "info/attributes", "objects/info/alternates", "refs/heads/other", "refs/tags/planted", "refs/replace"} {
			if _, err := os.Lstat(filepath.Join(dir, ".git", name)); err == nil {
				found = append(found, name)
			}
		}
		text, err := os.ReadFile(filepath.Join(dir, ".git/config"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "fsmonitor") {
			found = append(found, "config")
		}
		return found
	}
	for _, workspace := range []string{"w1", "repo"} {
		base := committed(t, 1)
		mark, own := filepath.Join(base, "executed"), filepath.Join(base, "own")
		hook := filepath.Join(base, "repo/.git/hooks/reference-transaction")
		if workspace == "w1" { // the host's own hook is not executed beside an agent's objects
			if err := os.WriteFile(hook, []byte("#!/bin/sh\ntouch "+own+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if r := h.clove("run", "--name", "planter", "--workspace", filepath.Join(base, workspace), "--", "sh", "-c", plants, "sh", "1", mark); r.code != 0 {
			t.Fatalf("%d, %s", r.code, r.stderr)
		}
		r := h.clove("apply", "--yes", "--allow-executable-config", "planter")
		h.clove("rm", "planter")
		if workspace == "repo" {
			if got := planted(base + "/repo"); len(got) != 8 {
				t.Errorf("control: only %q came, %s%s", got, r.stdout, r.stderr)
			}
			continue
		}
		if _, err := os.Lstat(own); err == nil {
			t.Error("a hook of the host was executed")
		}
		if err := os.Remove(hook); err != nil {
			t.Fatal(err)
		}
		if got := planted(base + "/repo"); len(got) > 0 || r.code != 0 {
			t.Errorf("%q came to the host: %d, %s%s", got, r.code, r.stdout, r.stderr)
		}
		if got := gitOut(t, base+"/w1", "log", "-1", "--format=%s"); got != "from 1" {
			t.Errorf("the branch is at %q", got)
		}
		gitOut(t, base+"/repo", "status")
		if _, err := os.Lstat(mark); err == nil {
			t.Error("what the agent planted was executed")
		}
	}
}

// Objects that only an attacker makes, and refs that are none. The control is a commit of the same
// agent's that is sound.
func TestHostileCommitsAreNotTaken(t *testing.T) {
	h := newHost(t)
	const tree = `blob=$(echo evil | git hash-object -w --stdin); ref=$(git rev-parse --git-common-dir)/refs/heads/w1; objects=$(git rev-parse --git-common-dir)/objects
tree() { printf "$1 $2\0$(echo "$3" | sed 's/../\\x&/g')" | git hash-object -t tree --literally -w --stdin; }
`
	for name, row := range map[string]struct{ do, why string }{
		"control":         {`git commit -q --allow-empty -m sound`, ""},
		"a tree .git":     {`git update-ref HEAD $(git commit-tree $(tree 100644 .git $blob) -p HEAD -m evil)`, "hasDotgit"},
		"a path above":    {`git update-ref HEAD $(git commit-tree $(tree 40000 .. $(git rev-parse HEAD^{tree})) -p HEAD -m evil)`, "hasDotdot"},
		"a blob":          {`echo $blob >$ref`, "non-commit"},
		"no object":       {`echo 1234567890123456789012345678901234567890 >$ref`, "bad object"},
		"a missing tree":  {`c=$(git commit-tree $(tree 100644 file $blob) -p HEAD -m x); git update-ref HEAD $c; t=$(git rev-parse $c^{tree}); rm -f $objects/$(echo $t | cut -c1-2)/$(echo $t | cut -c3-)`, "bad tree object"},
		"a missing blob":  {`git update-ref HEAD $(git commit-tree $(tree 100644 file $blob) -p HEAD -m x); rm -f $objects/$(echo $blob | cut -c1-2)/$(echo $blob | cut -c3-)`, "are refused"},
		"another content": {`git commit -q --allow-empty -m x; c=$(git rev-parse HEAD); at=$objects/$(echo $c | cut -c1-2)/$(echo $c | cut -c3-); rm -f $at; mkdir -p $(dirname $at); cp $objects/$(echo $blob | cut -c1-2)/$(echo $blob | cut -c3-) $at`, "bad object"},
		"a link":          {`rm -f $ref; ln -s /etc/passwd $ref`, "has removed it"},
		"a symbolic ref":  {`git symbolic-ref refs/heads/w1 refs/heads/main`, "has removed it"},
		"no branch":       {`git update-ref -d refs/heads/w1`, "has removed it"},
		"a pipe":          {`rm -f $ref; mkfifo $ref`, "has removed it"},
		"a linked object": {`git commit -q --allow-empty -m x; c=$(git rev-parse HEAD); at=$objects/$(echo $c | cut -c1-2)/$(echo $c | cut -c3-); mv $at /tmp/o; ln -s /tmp/o $at`, "symbolic links"},
		"a broken pack":   {`git commit -q --allow-empty -m x; git repack -qad; p=$(ls $objects/pack/*.pack); chmod u+w $p; printf xxxx | dd of=$p bs=1 seek=40 conv=notrunc 2>/dev/null`, "are refused"},
	} {
		base := committed(t, 1)
		before := gitOut(t, base+"/repo", "for-each-ref")
		if r := h.clove("run", "--name", "evil", "--workspace", base+"/w1", "--", "bash", "-c", identity+tree+row.do); r.code != 0 {
			t.Errorf("%s: %d, %s", name, r.code, r.stderr)
		}
		r := h.clove("apply", "--yes", "evil")
		h.clove("rm", "evil")
		now := gitOut(t, base+"/repo", "for-each-ref")
		if row.why == "" && (r.code != 0 || now == before) || row.why != "" && (r.code == 0 || now != before || !strings.Contains(r.stdout+r.stderr, row.why)) {
			t.Errorf("%s: %d, %s%s\nrefs %s", name, r.code, r.stdout, r.stderr, now)
		}
		gitOut(t, base+"/repo", "fsck", "--strict")
	}
}

// Passwords of the repository's configuration, and what other worktrees have, are not shown. The
// control is the flag that shows the repository as it is.
func TestAnAgentDoesNotSeeTheRepositorysPasswords(t *testing.T) {
	h := newHost(t)
	base := committed(t, 2)
	gitOut(t, base+"/repo", "remote", "add", "origin", "https://user:SECRET@host.example/x.git")
	gitOut(t, base+"/repo", "config", "http.extraHeader", "Authorization: SECRET")
	for _, name := range []string{"hooks/pre-push", "worktrees/w2/secret", "worktrees/w1/config.worktree"} {
		if err := os.WriteFile(filepath.Join(base, "repo/.git", name), []byte("SECRET\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		flags []string
		want  string
	}{{nil, "0\nhttps://host.example/x.git\n"}, {[]string{"-v", base + "/repo/.git:" + base + "/repo/.git:ro"}, "5\nhttps://user:SECRET@host.example/x.git\n"}} {
		r := h.agent(append(row.flags, "--workspace", base+"/w1"), "sh", "-c", `git config --global safe.directory '*'; cd "$(git rev-parse --git-common-dir)"; grep -r SECRET . | wc -l; git config remote.origin.url`)
		if r.stdout != row.want {
			t.Errorf("%q: %q, %s", row.flags, r.stdout, r.stderr)
		}
	}
}

// An agent that commits on a branch of its own: its objects are taken over, and the hint makes
// the branch.
func TestCommitsOnAnotherBranch(t *testing.T) {
	h := newHost(t)
	base := committed(t, 1)
	if r := h.clove("run", "--name", "own", "--workspace", base+"/w1", "--", "sh", "-c", "git checkout -qb feature\n"+commits, "sh", "1"); r.code != 0 {
		t.Fatalf("%d, %s", r.code, r.stderr)
	}
	r := h.clove("apply", "--yes", "own")
	_, hint, ok := strings.Cut(r.stdout, "git branch NAME ")
	if r.code != 1 || !ok {
		t.Fatalf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	gitOut(t, base+"/w1", "branch", "feature", strings.TrimRight(strings.Fields(hint)[0], ")"))
	if got := gitOut(t, base+"/w1", "log", "-1", "--format=%s", "feature"); got != "from 1" {
		t.Errorf("feature is at %q", got)
	}
	h.clove("rm", "own")
}

// A member's worktree by cloved, applied while the agent lives, twice: what comes into the
// repository belongs to the member. A repository that the member may not read is not shown.
func TestAMembersWorktree(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	base := userDir(t, nil)
	gitOut(t, base, "init", "-q", "repo")
	gitOut(t, base+"/repo", "commit", "-q", "--allow-empty", "-m", "first")
	gitOut(t, base+"/repo", "worktree", "add", "-q", "../w1")
	if out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", memberUID, memberUID), base).CombinedOutput(); err != nil {
		t.Fatalf("%v, %s", err, out)
	}
	script := commits + "\necho ready; read line </workspace/go; echo again >again; git add again; git commit -qm again; echo ready; sleep 1000"
	if r := d.as(memberUID, group, "run", "-d", "--name", "w", "--workspace", base+"/w1", "--", "sh", "-c", "mkfifo /tmp/go; ln -s /tmp/go /workspace/go; "+script, "sh", "1"); r.code != 0 || r.stderr != "" {
		t.Fatalf("%d, %s", r.code, r.stderr)
	}
	follow := d.follow("logs", "-f", members("w"))
	for _, want := range []string{"from 1", "again"} {
		for follow.line() != "ready" {
		}
		r := d.as(memberUID, group, "apply", "-y", "w")
		if got := gitOut(t, base+"/w1", "log", "-1", "--format=%s"); got != want || !strings.Contains(r.stdout, "refs/heads/w1 -> ") {
			t.Errorf("the branch is at %q: %d, %s%s", got, r.code, r.stdout, r.stderr)
		}
		d.ok("exec", members("w"), "sh", "-c", "[ -p /tmp/go ] && timeout 5 sh -c 'echo >/tmp/go' || true")
	}
	err := filepath.Walk(base+"/repo/.git", func(path string, info os.FileInfo, err error) error {
		if err == nil && ownerOf(t, path) != memberUID {
			t.Errorf("%s belongs to %d", path, ownerOf(t, path))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	gitOut(t, base+"/repo", "fsck", "--strict")
	d.ok("rm", "-f", members("w"))
	if err := os.Chown(base+"/repo/.git", 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base+"/repo/.git", 0o700); err != nil {
		t.Fatal(err)
	}
	if r := d.as(memberUID, group, "run", "--rm", "--workspace", base+"/w1", "--", "git", "-C", "/workspace", "log"); r.code != 128 || !strings.Contains(r.stderr, "git does not work inside") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// The repository of a submodule says that it is the folder's; that of a separate git directory
// is named by its user. Both are as a worktree's.
func TestSubmodulesAndSeparateGitDirectories(t *testing.T) {
	h := newHost(t)
	base := committed(t, 1)
	gitOut(t, base, "init", "-q", "super")
	gitOut(t, base+"/super", "-c", "protocol.file.allow=always", "submodule", "add", "-q", base+"/repo", "sub")
	gitOut(t, base+"/super", "commit", "-q", "-m", "first")
	gitOut(t, base, "init", "-q", "--separate-git-dir", base+"/gitdir", "folder")
	gitOut(t, base+"/folder", "commit", "-q", "--allow-empty", "-m", "first")
	for _, row := range []struct {
		workspace string
		flags     []string
	}{{base + "/super/sub", nil}, {base + "/folder", []string{"--git-dir", base + "/gitdir"}}} {
		args := append([]string{"run", "--name", "a", "--workspace", row.workspace}, row.flags...)
		if r := h.clove(append(args, "--", "sh", "-c", commits, "sh", "1")...); r.code != 0 || r.stderr != "" {
			t.Errorf("%s: %d, %s", row.workspace, r.code, r.stderr)
		}
		r := h.clove("apply", "--yes", "a")
		h.clove("rm", "a")
		if got := gitOut(t, row.workspace, "log", "--format=%s"); r.code != 0 || got != "from 1\nfirst" {
			t.Errorf("%s: %q, %d, %s%s", row.workspace, got, r.code, r.stdout, r.stderr)
		}
		if got := gitOut(t, row.workspace, "status", "--short"); got != "" {
			t.Errorf("%s is not clean: %s", row.workspace, got)
		}
		gitOut(t, row.workspace, "fsck", "--strict")
	}
	if r := h.clove("run", "--workspace", base+"/folder", "--", "git", "-C", "/workspace", "log"); r.code != 128 || !strings.Contains(r.stderr, "hint: if that repository is yours: --git-dir "+base+"/gitdir") {
		t.Errorf("control, not named: %d, %s", r.code, r.stderr)
	}
	if r := h.clove("run", "--git-dir", "none", "--workspace", base+"/w1", "--", "git", "-C", "/workspace", "log"); r.code != 128 {
		t.Errorf("none: %d, %s", r.code, r.stdout)
	}
	if r := h.clove("run", "--git-dir", base+"/gitdir", "--workspace", base+"/w1", "--", "true"); r.code != 125 || !strings.Contains(r.stderr, "which is not in") {
		t.Errorf("another repository: %d, %s", r.code, r.stderr)
	}
}
