//go:build root

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// hostileFolder is what an agent leaves in a folder that is kept. %[1]s is a folder of the host that everyone may
// write, and that no sandbox has. It prints what it was refused.
const hostileFolder = `set -e; cd /memory
ln -s %[1]s dir; ln -s %[1]s/file file; ln -s /etc/shadow shadow; ln -s / root; ln -s ../../../../../..%[1]s up
mkfifo pipe; mkdir -p .ssh .git/hooks .config; ln -s %[1]s .claude
for f in .profile .bashrc .ssh/rc .git/hooks/post-checkout; do printf '#!/bin/sh\n: >%[1]s/profile\n' >$f; chmod 755 $f; done
printf '[core]\n\tfsmonitor = ": >%[1]s/git; false"\n' >.git/config
cp /usr/bin/id su; chmod 6755 su; ln su hard
ln /usr/bin/id base 2>/dev/null || echo no link to the base
ln /workspace/mine work 2>/dev/null || echo no link to the workspace
mknod disk b 8 0 2>/dev/null || echo no device
mknod null c 1 3 2>/dev/null || echo no device
truncate -s 1T huge; : >"$(printf 'new\nline \033[2J')"; : >"$(printf 'tar --checkpoint-action=exec=sh')"; : >'--checkpoint=1'
mkdir many; cd many; seq 3000 | xargs touch
for i in $(seq 100); do mkdir d; cd d; done`

// Nothing that a life leaves in a kept folder, or that comes there in an archive, leads to the host or gets more rights
// in the next life of the agent, nor by what clove does with it: copies, exports, imports, diff, apply and removal, of
// root's and a member's. What would stand still at a pipe, or follow a link out, is refused. The controls: a file with the
// same bits gives rights on the host, and a user of the host that works in the folder follows what is in it.
func TestAHostileKeptFolderInItsNextLife(t *testing.T) {
	d := newClovedFor(t, groupName)
	for name, h := range map[string]*host{"root": d.host, "member": d.member()} {
		outside, folder := userDir(t, nil), userDir(t, map[string]string{"mine": "mine\n"})
		if err := os.Chmod(outside, 0o777); err != nil {
			t.Fatal(err)
		}
		if r := h.in(folder, "", "run", "--rm", "--workspace", ".", "--home", "mine", "--keep", "/memory", "--", "bash", "-c", fmt.Sprintf(hostileFolder, outside)); r.code != 0 ||
			r.stdout != "no link to the base\nno link to the workspace\nno device\nno device\n" {
			t.Fatalf("%s: %d, %q, %s", name, r.code, r.stdout, r.stderr)
		}
		run := "run --rm --workspace . --home mine --keep /memory"
		var archive string
		for _, row := range []struct {
			args string
			code int
			want string // in what is printed
		}{
			{run + " -- sh -c '/memory/su -u; /memory/hard -g; ls /memory/many | wc -l; readlink /memory/dir'", 0, "1000\n1000\n3001\n" + outside},
			{run + " -- sh -c 'touch /memory/dir/x 2>/dev/null || echo is not there; cat /memory/shadow'", 1, "is not there"},
			{run + " -e HOME=/memory -- bash -lc 'echo in; true'", 0, "in"},
			{"run -d --name live --workspace . --home mine --keep /memory -- sh -c 'echo new >/workspace/new; sleep 600'", 0, ""},
			{run + " -- readlink /memory/dir", 0, "this one has a copy"},
			{"exec live -- /memory/su -u", 0, "1000"},
			{"cat live /memory/dir/x", 1, "clove: "},
			{"cat live /memory/file", 1, "clove: "},
			{"cat live /memory/up/x", 1, "clove: "},
			{"cat live /memory/pipe", 1, "clove: "},
			{"cat live /memory/.git/config", 0, "fsmonitor"},
			{"cp " + folder + "/mine live:/memory/dir/mine", 1, "clove: "},
			{"cp " + folder + "/mine live:/memory/file", 0, ""}, // in the place of the link
			{"cp live:/memory/dir " + folder + "/got", 0, ""},
			{"cp live:/memory/pipe " + folder + "/pipe", 1, "clove: "},
			{"diff live", 0, "A /workspace/new\n"},
			{"home export mine /memory", 0, "fsmonitor"},
			{"rm --force live", 0, ""},
			{"run --name changes --workspace . --home mine --keep /memory -- sh -c 'echo new >/workspace/new'", 0, ""},
			{"diff changes", 0, "A /workspace/new\n"},
			{"apply --yes changes", 0, "A /workspace/new\n"},
			{"rm changes", 0, ""},
			{"home ls", 0, "mine"},
			{"home export mine /memory", 0, "fsmonitor"},
			{"home import mine /memory", 0, ""},
			{run + " -- /memory/su -u", 0, "1000"},
			{"home import other /memory", 0, ""},
			{"run --rm --workspace . --home other --keep /memory -- ./../memory/id -u", 0, "1000"},
		} {
			stdin := archive
			if strings.HasPrefix(row.args, "home import other") {
				stdin = rootsOwn(t)
			}
			r := h.in(folder, stdin, words(row.args)...)
			export := strings.HasPrefix(row.args, "home export")
			if r.code != row.code || !strings.Contains(r.stdout+r.stderr, row.want) || !export && strings.Contains(r.stdout+r.stderr, "\x1b") {
				t.Errorf("%s: %s: %d, %.2000q, %.1000s", name, row.args, r.code, r.stdout, r.stderr)
			}
			if export {
				archive = r.stdout
			}
		}
		if len(archive) > 20<<20 {
			t.Errorf("%s: a file with holes is %d bytes in the archive", name, len(archive))
		}
		if left := namesIn(t, outside); left != "" {
			t.Errorf("%s: the host has executed or followed %v", name, left)
		}
		controlOfAFolder(t, outside, archive)
		for _, home := range keptHomes(t, h) {
			if r := h.clove("home", "rm", home.ID); r.code != 0 {
				t.Errorf("%s: %s", name, r.stderr)
			}
		}
	}
}

// controlOfAFolder is the host's root with a hostile folder, and a user of the host with a file of root's in it.
func controlOfAFolder(t *testing.T, outside, archive string) {
	t.Helper()
	folder := userDir(t, nil)
	for _, line := range []string{"tar -xf - --exclude=./huge --exclude=./many", ": >dir/dir; : >up/up", "HOME=$PWD bash -lc :", "git status"} {
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir, cmd.Stdin = folder, strings.NewReader(archive)
		if out, err := cmd.CombinedOutput(); err != nil && !strings.Contains(line, "git") {
			t.Errorf("control: %s: %v, %s", line, err, out)
		}
	}
	if done := namesIn(t, outside); !strings.HasPrefix(done, "dir ") || !strings.HasSuffix(done, "profile up") {
		t.Errorf("control: a user of the host has followed and executed %q", done)
	}
	cmd := exec.Command("sh", "-c", "tar -xpf - && chmod 711 . && setpriv --reuid 65534 --clear-groups ./id -u")
	cmd.Dir, cmd.Stdin = userDir(t, nil), strings.NewReader(rootsOwn(t))
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "0\n" {
		t.Errorf("control: the bit gives no rights on this host: %v, %s", err, out)
	}
}

// rootsOwn is an archive of a program that root owns, and that gives its user root's rights.
func rootsOwn(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("tar", "-C", "/usr/bin", "--owner=0", "--group=0", "--mode=4755", "-cf", "-", "id").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
