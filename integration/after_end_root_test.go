//go:build root

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostileEnd is an agent that leaves changes and traps.
const hostileEnd = `cd /workspace; echo two >>text; rm gone; mkdir new; echo deep >new/deep; printf 'a\0b' >binary
ln -s /etc out; ln -s /etc/hostname link; mkfifo pipe; echo closed >closed; chmod 0 closed; printf '\033]52;c;eA==\a' >escape
ln -s "$1" secret; echo done`

// What an ended run left is shown and copied for its owner, as patches and as files, and for no
// other member. Links that the agent left lead nowhere, what it could not read itself is not
// copied, and what it did not change is not there.
func TestAfterTheEnd(t *testing.T) {
	d := newClovedFor(t, groupName)
	group := []uint32{groupID}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("SECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := userDir(t, map[string]string{"text": "one\n", "gone": "was\n", "kept": "kept\n"})
	run := func(args ...string) result { return d.as(memberUID, group, args...) }
	if r := run("run", "-d", "--name", "box", "--workspace", dir, "--", "sh", "-c", hostileEnd, "sh", secret); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if r := run("wait", "box"); r.code != 0 {
		t.Fatal(r)
	}
	for _, row := range []struct {
		args   string
		code   int
		stdout string // a part
		stderr string // a part
	}{
		{"diff box text", 0, "@@ -1 +1,2 @@\n one\n+two\n", ""},
		{"diff box gone", 0, "deleted file mode 100644\n--- a/workspace/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-was\n", ""},
		{"diff box binary", 0, "contents are not shown: binary", ""},
		{"diff box secret", 0, "new file mode 120000", ""},
		{"diff box kept", 1, "", "changed nothing at /workspace/kept"},
		{"cat box text new/deep", 0, "one\ntwo\ndeep\n", ""},
		{"cat box kept", 1, "", filepath.Join(dir, "kept")},
		{"cat box gone", 1, "", "left nothing at /workspace/gone"},
		{"cat box secret", 1, "", "is a link to " + secret},
		{"cat box out/hostname", 1, "", "the agent left a link in this path"},
		{"cat box ../../etc/hostname", 1, "", "left nothing at /etc/hostname"},
		{"cat box pipe", 1, "", "it is a pipe"},
		{"cat box closed", 1, "", "permission denied"},
		{"cp box:/workspace/out/hostname -", 1, "", "the agent left a link in this path"},
	} {
		r := run(strings.Fields(row.args)...)
		if r.code != row.code || !strings.Contains(r.stdout, row.stdout) || !strings.Contains(r.stderr, row.stderr) || strings.Contains(r.stdout+r.stderr, "SECRET") {
			t.Errorf("%s: %d\n%s\n%s", row.args, r.code, r.stdout, r.stderr)
		}
	}
	// A folder: everything but the pipe and what the agent may not read.
	to := userDir(t, nil)
	r := run("cp", "box:/workspace", filepath.Join(to, "copy"))
	if r.code != 1 || !strings.Contains(r.stderr, "left out: workspace/closed (permission denied), workspace/pipe (it is a pipe)") {
		t.Errorf("%+v", r)
	}
	for name, want := range map[string]string{"text": "one\ntwo\n", "new/deep": "deep\n"} {
		if text, err := os.ReadFile(filepath.Join(to, "copy", name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if target, err := os.Readlink(filepath.Join(to, "copy/secret")); err != nil || target != secret {
		t.Errorf("%q, %v", target, err)
	}
	if _, err := os.Lstat(filepath.Join(to, "copy/gone")); err == nil {
		t.Error("a deleted file was copied")
	}
	if r := run("cp", "box:/workspace/new", to); r.code != 0 || !strings.Contains(r.stderr, "has ended") {
		t.Errorf("%+v", r)
	}
	// The control of the links: a reader that follows them has the secret.
	if text, err := os.ReadFile(filepath.Join(to, "copy/secret")); err != nil || string(text) != "SECRET\n" {
		t.Errorf("%q, %v", text, err)
	}
	// Another member has no such run; root has.
	for _, args := range [][]string{{"cat", members("box"), "text"}, {"diff", members("box"), "text"}, {"cp", members("box") + ":/workspace/text", "-"}} {
		if r := d.as(memberUID+1, group, args...); r.code == 0 || strings.Contains(r.stdout, "two") {
			t.Errorf("%q: %+v", args, r)
		}
		if r := d.clove(args...); r.code != 0 || !strings.Contains(r.stdout, "two") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// A live run shows the same, as it is at the time.
func TestDiffAndCatOfALiveRun(t *testing.T) {
	d := newCloved(t)
	d.detach("live", "echo one >/workspace/f; echo written; sleep 1000")
	d.follow("logs", "-f", "live").line()
	if text := d.ok("diff", "live", "f"); !strings.Contains(text, "new file mode 100644") || !strings.Contains(text, "+one\n") {
		t.Errorf("%s", text)
	}
	if text := d.ok("cat", "live", "f"); text != "one\n" {
		t.Errorf("%s", text)
	}
}
