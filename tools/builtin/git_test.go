package builtin

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containerd/console"

	"clove.run/clove/internal/testhost"
)

// clean is an environment for git without settings of the host's.
func clean(dir string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x", "GIT_TERMINAL_PROMPT=0"}
}

func shell(t *testing.T, dir, script string, arguments ...string) string {
	t.Helper()
	c := exec.Command("sh", append([]string{"-euc", script, "sh"}, arguments...)...)
	c.Dir, c.Env = dir, clean(dir)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

const newRepository = `git init -q -b main .; printf 'one\n' >a.txt; mkdir d; printf 'two\n' >d/b.txt; git add .; git commit -qm first; printf 'three\n' >>a.txt; git commit -qam second; printf 'four\n' >>a.txt`

func look(dir string, a GitArguments) (string, error) {
	return (&Box{Dir: dir, Most: 32 << 10}).Git(context.Background(), a)
}

func TestGitLooks(t *testing.T) {
	t.Parallel()
	testhost.Tool(t, "git")
	dir := t.TempDir()
	shell(t, dir, newRepository)
	before := shell(t, dir, "cat .git/index | sha256sum; ls -lR .git")
	for _, row := range []struct {
		a    GitArguments
		want string
	}{
		{GitArguments{Op: "status", Args: []string{"--short", "--branch"}}, "## main\n M a.txt\n"},
		{GitArguments{Op: "log", Args: []string{"--format=reference", "-n1"}}, "(second, "},
		{GitArguments{Op: "log", Args: []string{"--oneline"}, Path: "d"}, " first\n"},
		{GitArguments{Op: "log", Ref: "main~1", Args: []string{"--stat"}}, "2 files changed"},
		{GitArguments{Op: "diff"}, "+four"},
		{GitArguments{Op: "diff", Ref: "main~1..main", Args: []string{"-U0"}}, "+three"},
		{GitArguments{Op: "show", Ref: "HEAD:d/b.txt"}, "two\n"},
		{GitArguments{Op: "blame", Path: "a.txt", Args: []string{"-L1,1"}}, "one"},
		{GitArguments{Op: "ls_files", Repo: "d"}, "b.txt\n"},
		{GitArguments{Op: "branch", Args: []string{"-v"}}, "* main"},
		{GitArguments{Op: "rev_parse", Args: []string{"--abbrev-ref"}, Ref: "HEAD"}, "main\n"},
		{GitArguments{Op: "show", Ref: "nothing"}, "bad revision"},
		{GitArguments{Op: "diff", Args: []string{"--cached"}}, "[nothing]"},
	} {
		got, err := look(dir, row.a)
		if err != nil {
			got += err.Error()
		}
		if !strings.Contains(got, row.want) {
			t.Errorf("%+v: %q", row.a, got)
		}
	}
	if after := shell(t, dir, "cat .git/index | sha256sum; ls -lR .git"); after != before {
		t.Errorf("it has changed the repository:\n%s\n%s", before, after)
	}
	shell(t, dir, "git worktree add -q ../"+filepath.Base(dir)+"-w; git clone -q --bare . ../"+filepath.Base(dir)+"-bare")
	defer os.RemoveAll(dir + "-w")
	defer os.RemoveAll(dir + "-bare")
	if got, err := look(dir+"-w", GitArguments{Op: "status", Args: []string{"-s", "-b"}}); err != nil || !strings.Contains(got, "-w\n") {
		t.Errorf("a worktree: %q, %v", got, err)
	}
	if got, err := look(dir+"-bare", GitArguments{Op: "log", Args: []string{"--oneline"}}); err != nil || !strings.Contains(got, "second") {
		t.Errorf("a bare one: %q, %v", got, err)
	}
	if _, err := look("/proc", GitArguments{Op: "status"}); err == nil || !strings.Contains(err.Error(), "no git repository") {
		t.Error(err)
	}
}

func TestGitRefusesOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, a := range []GitArguments{
		{Op: "diff", Args: []string{"--output=x"}}, {Op: "diff", Args: []string{"--ext-diff"}}, {Op: "diff", Args: []string{"--textconv"}}, {Op: "diff", Args: []string{"-Ox"}}, {Op: "diff", Args: []string{"--no-index"}},
		{Op: "log", Args: []string{"-c", "core.pager=x"}}, {Op: "log", Args: []string{"--format=%G?"}}, {Op: "log", Args: []string{"--show-signature"}}, {Op: "log", Args: []string{"--date=format:%G?"}}, {Op: "show", Args: []string{"--upload-pack=x"}},
		{Op: "log", Ref: "--output=x"}, {Op: "log", Ref: "a\nb"}, {Op: "branch", Args: []string{"-D"}}, {Op: "branch", Args: []string{"new"}}, {Op: "branch", Ref: "new"}, {Op: "status", Args: []string{"--", "x"}},
		{Op: "gc"}, {Op: "commit"}, {Op: "-c"}, {Op: ""}, {Op: "log", Args: []string{"--exec-path=."}}, {Op: "ls_files", Args: []string{"--recurse-submodules"}}, {Op: "diff", Args: []string{"--submodule=diff"}}, {Op: "log", Args: []string{"-n"}}, {Op: "log", Args: []string{"-nx"}},
	} {
		if _, err := look(dir, a); err == nil {
			t.Errorf("%+v is not refused", a)
		} else if _, is := err.(*Invalid); !is {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

// poison has a repository name a program, PAYLOAD, and a command of plain git's that runs it.
type poison struct {
	name    string
	script  string
	control string // with git
	call    GitArguments
	env     string // of the process, NAME=VALUE
}

var poisons = []poison{
	{"fsmonitor", `git config core.fsmonitor PAYLOAD`, `git status`, GitArguments{Op: "status"}, ""},
	{"included", `printf '[core]\n\tfsmonitor = PAYLOAD\n' >.git/more; git config include.path more`, `git status`, GitArguments{Op: "status"}, ""},
	{"a worktree's settings", `git config extensions.worktreeConfig true; printf '[core]\n\tfsmonitor = PAYLOAD\n' >.git/config.worktree`, `git status`, GitArguments{Op: "status"}, ""},
	{"textconv", `echo '*.txt diff=x' >.gitattributes; git config diff.x.textconv PAYLOAD`, `git diff`, GitArguments{Op: "diff"}, ""},
	{"textconv of blame", `echo '*.txt diff=x' >.gitattributes; git config diff.x.textconv PAYLOAD`, `git blame a.txt`, GitArguments{Op: "blame", Path: "a.txt"}, ""},
	{"textconv of log", `echo '*.txt diff=x' >.gitattributes; git config diff.x.textconv PAYLOAD`, `git log -p`, GitArguments{Op: "log", Args: []string{"-p"}}, ""},
	{"external diff", `git config diff.external PAYLOAD`, `git diff`, GitArguments{Op: "diff"}, ""},
	{"external diff of a driver", `echo '*.txt diff=x' >.git/info/attributes; git config diff.x.command PAYLOAD`, `git diff`, GitArguments{Op: "diff"}, ""},
	{"clean", `echo '*.txt filter=x' >.gitattributes; git config filter.x.clean PAYLOAD`, `git diff`, GitArguments{Op: "diff"}, ""},
	{"clean of status", `echo '*.txt filter=x' >.git/info/attributes; git config filter.x.clean PAYLOAD; touch d/b.txt`, `git status`, GitArguments{Op: "status"}, ""},
	{"attributes of the settings", `echo '*.txt filter=x' >.git/attr; git config core.attributesFile "$PWD/.git/attr"; git config filter.x.clean PAYLOAD`, `git diff`, GitArguments{Op: "diff"}, ""},
	{"process", `echo '*.txt filter=x' >.gitattributes; git config filter.x.process PAYLOAD; git config filter.x.required true`, `git diff`, GitArguments{Op: "diff"}, ""},
	{"smudge", `git config filter.x.smudge PAYLOAD; echo '*.txt filter=x' >.gitattributes`, `git cat-file --filters HEAD:a.txt`, GitArguments{Op: "show", Ref: "HEAD:a.txt"}, ""},
	{"hook", `printf '#!/bin/sh\nPAYLOAD\n' >.git/hooks/post-index-change; chmod +x .git/hooks/post-index-change; touch d/b.txt`, `git status`, GitArguments{Op: "status"}, ""},
	{"hooks elsewhere", `mkdir h; printf '#!/bin/sh\nPAYLOAD\n' >h/post-index-change; chmod +x h/post-index-change; git config core.hooksPath "$PWD/h"; touch d/b.txt`, `git status`, GitArguments{Op: "status"}, ""},
	{"pager", `git config core.pager PAYLOAD`, `TERMINAL git log`, GitArguments{Op: "log"}, ""},
	{"pager of a command", `git config pager.branch PAYLOAD`, `TERMINAL git branch`, GitArguments{Op: "branch"}, ""},
	{"signatures", `git config gpg.program PAYLOAD; git config log.showSignature true; c=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin); git update-ref refs/heads/main $c`,
		`git log`, GitArguments{Op: "log"}, ""},
	{"a missing object", `git config core.repositoryformatversion 1; git config extensions.partialClone o; git config remote.o.promisor true; git config remote.o.url ssh://h/p; git config core.sshCommand PAYLOAD; b=$(git rev-parse HEAD:a.txt); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-)`,
		`git show HEAD`, GitArguments{Op: "show", Ref: "HEAD"}, ""},
	{"a missing object from a program", `git config core.repositoryformatversion 1; git config extensions.partialClone o; git config remote.o.promisor true; git config remote.o.url "$PWD"; git config remote.o.uploadpack PAYLOAD; b=$(git rev-parse HEAD:a.txt); rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-)`,
		`git show HEAD`, GitArguments{Op: "show", Ref: "HEAD"}, ""},
	{"credentials", `git config credential.helper '!PAYLOAD'`, `printf 'url=http://h/\n\n' | git credential fill`, GitArguments{Op: "show"}, ""},
	{"alias", `git config alias.st '!PAYLOAD'`, `git st`, GitArguments{Op: "st"}, ""},
	{"submodule", `git init -q sub; (cd sub; echo x >x; git add x; git commit -qm x; git config core.fsmonitor PAYLOAD); git -c advice.addEmbeddedRepo=false add sub`, `git status`, GitArguments{Op: "status"}, ""},
	{"submodule in diff", `git init -q sub; (cd sub; echo x >x; git add x; git commit -qm x; git config core.fsmonitor PAYLOAD); git -c advice.addEmbeddedRepo=false add sub; git config diff.submodule diff`, `git diff`, GitArguments{Op: "diff"}, ""},
	{"a folder that is a repository", `cp -r .git bare; mkdir bare/tree; printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = PAYLOAD\n\tbare = false\n\tworktree = tree\n' >bare/config`, `cd bare; git status`, GitArguments{Op: "status", Repo: "bare"}, ""},
	{"settings of the user", `printf '[core]\n\tfsmonitor = PAYLOAD\n' >.gitconfig`, `git status`, GitArguments{Op: "status"}, "HOME=FOLDER"},
	{"environment: external diff", ``, `git diff`, GitArguments{Op: "diff"}, "GIT_EXTERNAL_DIFF=PAYLOAD"},
	{"environment: settings", ``, `git status`, GitArguments{Op: "status"}, `GIT_CONFIG_PARAMETERS='core.fsmonitor'='PAYLOAD'`},
	{"environment: another directory", `cp -r .git other; git --git-dir=other config core.fsmonitor PAYLOAD`, `git status`, GitArguments{Op: "status"}, "GIT_DIR=FOLDER/other"},
}

// A repository names programs in all these ways. Plain git runs them, the tool does not.
func TestAPoisonedRepositoryRunsNothing(t *testing.T) {
	testhost.Tool(t, "git")
	for _, p := range poisons {
		t.Run(p.name, func(t *testing.T) {
			dir := t.TempDir()
			mark, payload := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "payload")
			if err := os.WriteFile(payload, []byte("#!/bin/sh\n: >"+mark+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			fill := strings.NewReplacer("PAYLOAD", payload, "FOLDER", dir).Replace
			shell(t, dir, newRepository+"\n"+fill(p.script))
			if name, value, set := strings.Cut(fill(p.env), "="); set {
				t.Setenv(name, value)
			}
			if _, err := look(dir, p.call); err != nil && p.name != "alias" && !strings.Contains(p.name, "missing") {
				t.Errorf("the tool: %v", err)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the tool has run the payload")
			}
			_ = os.Remove(mark)
			control(t, dir, p.control, fill(p.env))
			if _, err := os.Stat(mark); err != nil {
				t.Error("control: plain git did not run the payload")
			}
		})
	}
}

// control runs a command of plain git's; TERMINAL: with one. Its failure is not one of the test.
func control(t *testing.T, dir, command, env string) {
	t.Helper()
	command, terminal := strings.CutPrefix(command, "TERMINAL ")
	c := exec.Command("sh", "-c", command)
	c.Dir, c.Env = dir, append(clean(dir), "TERM=xterm", env)
	if !terminal {
		out, err := c.CombinedOutput()
		t.Logf("control: %v: %.300s", err, out)
		return
	}
	pty, path, err := console.NewPty()
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Close()
	side, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer side.Close()
	c.Stdin, c.Stdout, c.Stderr = nil, side, side
	if err := c.Run(); err != nil {
		t.Log(fmt.Errorf("control: %w", err))
	}
}
