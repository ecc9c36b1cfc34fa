//go:build root

package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// hostileHome is what an agent leaves in its home so that programs of the host would execute or follow
// it. Each has an effect in %[1]s, a folder of the host that everyone may write, and that no sandbox has.
const hostileHome = `set -e; cd /home/agent
mkdir -p bin .local/bin .config .clove
for p in tar sh bash git ls cat id find clove clove-init clove-loop python3 node; do
	printf '#!/bin/sh\n: >%[1]s/path\n' >bin/$p; chmod 4755 bin/$p; cp -p bin/$p .local/bin/$p
done
for f in .profile .bashrc .bash_profile .bash_logout .zshenv .pythonrc; do echo ': >%[1]s/profile' >$f; done
printf '[core]\n\tfsmonitor = ": >%[1]s/git; false"\n\tpager = ": >%[1]s/git"\n[alias]\n\tst = "!: >%[1]s/alias"\n' >.gitconfig
printf 'script-shell=%[1]s/shell\nprefix=%[1]s/prefix\n' >.npmrc
ln -s %[1]s .codex; mkdir .claude; ln -s %[1]s/settings .claude/settings.json
ln -s %[1]s dir; ln -s /etc/shadow .netrc; ln -s / root
mkfifo .config/pipe; mkfifo .clove/conversation.jsonl
truncate -s 1T huge; : >"$(printf 'new\nline \033[2J')"`

// in runs a command of clove's in a folder. HOME of the caller stays what it is.
func (h *host) in(folder, stdin string, args ...string) result {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := h.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = folder, strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil || cmd.ProcessState == nil {
		h.t.Fatalf("clove %v: %v, %v\n%s", args, err, ctx.Err(), &errs)
	}
	return result{stdout: out.String(), stderr: errs.String(), code: cmd.ProcessState.ExitCode()}
}

// Nothing that a life leaves in its home is executed or followed by the host in the next: by no start,
// copy, export, import, diff, apply and removal, of root's and a member's. The control: a user of the
// host that has these files as a home executes them.
func TestAHostileHomeInItsNextLife(t *testing.T) {
	d := newClovedFor(t, groupName)
	for name, h := range map[string]*host{"root": d.host, "member": d.member()} {
		outside, folder := userDir(t, nil), userDir(t, map[string]string{"mine": "mine\n"})
		if err := os.Chmod(outside, 0o777); err != nil {
			t.Fatal(err)
		}
		if r := h.in(folder, "", "run", "--rm", "--workspace", ".", "--home", "mine", "--", "sh", "-c", fmt.Sprintf(hostileHome, outside)); r.code != 0 {
			t.Fatalf("%s: %s", name, r.stderr)
		}
		var archive string
		for _, row := range []struct {
			args []string
			code int
			want string // in what is printed
		}{
			{[]string{"run", "--rm", "--home", "mine", "--", "sh", "-c", "cat /workspace/mine; readlink ~/dir"}, 0, outside},
			{[]string{"run", "-d", "--name", "live", "--workspace", ".", "--home", "mine", "--", "sh", "-c", "echo new >/workspace/new; sleep 600"}, 0, ""},
			{[]string{"run", "--rm", "--workspace", ".", "--home", "mine", "--", "readlink", "/home/agent/dir"}, 0, "this one has a copy"},
			{[]string{"exec", "live", "--", "sh", "-c", "readlink ~/dir"}, 0, outside},
			{[]string{"cat", "live", "/home/agent/dir/x"}, 1, "clove: "},
			{[]string{"cat", "live", "/home/agent/.config/pipe"}, 1, "clove: "},
			{[]string{"cat", "live", "/home/agent/.gitconfig"}, 0, "fsmonitor"},
			{[]string{"cp", folder + "/mine", "live:/home/agent/dir/mine"}, 1, "clove: "},
			{[]string{"home", "export", "mine"}, 0, "fsmonitor"},
			{[]string{"rm", "--force", "live"}, 0, ""},
			{[]string{"run", "--name", "changes", "--workspace", ".", "--home", "mine", "--", "sh", "-c", "echo new >/workspace/new"}, 0, ""},
			{[]string{"diff", "changes"}, 0, "A /workspace/new\n"},
			{[]string{"apply", "--yes", "changes"}, 0, "A /workspace/new\n"},
			{[]string{"show", "changes"}, 0, "changes"},
			{[]string{"rm", "changes"}, 0, ""},
			{[]string{"run", "--rm", "--workspace", ".", "--home", "mine", "--network", "none", "--model", "echo", "--model-setup", "codex", "--", "true"}, 125, "/home/agent/.codex/config.toml"},
			{[]string{"run", "--rm", "--workspace", ".", "--home", "mine", "--network", "none", "--model", "echo", "--model-setup", "claude-code", "--", "cat", "/home/agent/.claude/settings.json"}, 0, "ANTHROPIC_MODEL"},
			{[]string{"ask", "--rm", "--workspace", ".", "--home", "mine", "--network", "none", "--model", "echo", "hello"}, 1, "conversation.jsonl"},
			{[]string{"home", "ls"}, 0, "mine"},
			{[]string{"home", "export", "mine"}, 0, "fsmonitor"},
			{[]string{"home", "import", "mine"}, 0, ""},
		} {
			stdin := ""
			if strings.Join(row.args[:2], " ") == "home import" {
				stdin = archive
			}
			r := h.in(folder, stdin, row.args...)
			if r.code != row.code || !strings.Contains(r.stdout+r.stderr, row.want) {
				t.Errorf("%s: %v: %d, %.2000q, %s", name, row.args, r.code, r.stdout, r.stderr)
			}
			if row.args[0] == "home" && row.args[1] == "export" {
				archive = r.stdout
			}
		}
		if len(archive) > 10<<20 {
			t.Errorf("%s: a file with holes is %d bytes in the archive", name, len(archive))
		}
		if left := namesIn(t, outside); left != "" {
			t.Errorf("%s: the host has executed or followed %v", name, left)
		}
		controlOfAHome(t, outside, archive)
		for _, home := range keptHomes(t, h) {
			if r := h.clove("home", "rm", home.ID); r.code != 0 {
				t.Errorf("%s: %s", name, r.stderr)
			}
		}
	}
}

// controlOfAHome is a user of the host with a hostile home.
func controlOfAHome(t *testing.T, outside, archive string) {
	t.Helper()
	home := userDir(t, nil)
	for _, line := range []string{"tar -xf - --exclude=./huge", "HOME=$PWD bash -lc :", "HOME=$PWD git init -q repo && cd repo && HOME=$OLDPWD git status; HOME=$OLDPWD git st", "PATH=$PWD/bin:$PATH; cat /dev/null", ": >.codex/config.toml"} {
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir, cmd.Stdin = home, strings.NewReader(archive)
		if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(line, "git") {
			t.Errorf("control: %s: %v, %s", line, err, out)
		}
	}
	if done := namesIn(t, outside); done != "alias config.toml git path profile" {
		t.Errorf("control: a user of the host has executed %s", done)
	}
}

// A second run with the file of a client of models in a kept home has the file of its own model, and
// starts. The control is the file of the first.
func TestModelSetupInAKeptHome(t *testing.T) {
	h := newHost(t)
	folder := userDir(t, nil)
	for _, model := range []string{"echo", "echo:provider-tools"} {
		r := h.in(folder, "", "run", "--rm", "--home", "mine", "--network", "none", "--model", model, "--model-setup", "codex", "--", "sh", "-c", "head -n 1 ~/.codex/config.toml; echo stale >~/.codex/config.toml")
		if r.code != 0 || r.stdout != "model = \"echo\"\n" {
			t.Errorf("%s: %d, %q, %s", model, r.code, r.stdout, r.stderr)
		}
	}
	if r := h.in(folder, "", "run", "--rm", "--home", "mine", "--", "cat", "/home/agent/.codex/config.toml"); r.stdout != "stale\n" {
		t.Errorf("control: %q, %s", r.stdout, r.stderr)
	}
}

// The name of a member's folder, whatever is in it, is one line of what root sees of kept homes.
func TestTheFolderOfAHomeIsOneLine(t *testing.T) {
	h := newHost(t)
	folder := filepath.Join(userDir(t, nil), "a\nb \x1b[2Jc")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if r := h.in(folder, "", "run", "--rm", "--home", "mine", "--", "true"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if r := h.clove("home", "ls"); strings.Count(r.stdout, "\n") != 2 || strings.Contains(r.stdout, "\x1b") {
		t.Errorf("%q, %s", r.stdout, r.stderr)
	}
	if homes := keptHomes(t, h); len(homes) != 1 || homes[0].Folder != folder {
		t.Errorf("control: %+v", homes)
	}
}
