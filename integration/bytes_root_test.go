//go:build root

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Names that are not UTF-8 arrive inside by way of cloved as they are: another file stays.
func TestBytesAreBytes(t *testing.T) {
	d := newCloved(t)
	dir := t.TempDir()
	d.ok("run", "-d", "--name", "box", "--", "sh", "-c", `touch "$1" "/tmp/bad�" && touch /tmp/ready && sleep 60`, "sh", "/tmp/bad\xff")
	d.ok("exec", "box", "--", "sh", "-c", "until test -e /tmp/ready; do sleep 0.05; done")
	d.ok("cp", "box:/tmp/bad\xff", dir)
	if _, err := os.Lstat(filepath.Join(dir, "bad\xff")); err != nil {
		t.Errorf("out: %v", err)
	}
	d.ok("exec", "box", "--", "rm", "/tmp/bad\xff")
	d.ok("exec", "box", "--", "sh", "-c", `test -e "/tmp/bad�" && ! test -e "$1"`, "sh", "/tmp/bad\xff")
}

// The bytes of names and of links' targets arrive on every path of files, from a live run and after
// its end.
func TestBytesOfFilesAreBytes(t *testing.T) {
	const file, link, folder = "h\xff.txt", "l\xfe", "d\xfd"
	d := newCloved(t)
	work, out := t.TempDir(), t.TempDir()
	from := filepath.Join(t.TempDir(), folder)
	for _, err := range []error{os.Mkdir(from, 0o755), os.Symlink("to\xfc", filepath.Join(from, link)),
		os.WriteFile(filepath.Join(from, file), []byte("copied\n"), 0o644), os.WriteFile(filepath.Join(work, file), []byte("one\n"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.ok("run", "-d", "--name", "box", "--workspace", work, "--", "sh", "-c", `echo two >>"$1"; ln -s "$2" "$3"; touch /tmp/ready; sleep 1000`, "sh", file, "to\xfc", link)
	d.ok("exec", "box", "--", "sh", "-c", "until test -e /tmp/ready; do sleep 0.05; done")
	d.ok("cp", from, "box:/tmp")
	d.ok("exec", "box", "--", "sh", "-c", `test -f "$1/$2" && test "$(readlink "$1/$3")" = "$4"`, "sh", "/tmp/"+folder, file, link, "to\xfc")
	for _, when := range []string{"live", "ended"} {
		to := filepath.Join(out, when)
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
		d.ok("cp", "box:/tmp/"+folder, to)
		if got, err := os.Readlink(filepath.Join(to, folder, link)); err != nil || got != "to\xfc" {
			t.Errorf("%s, out: %q, %v", when, got, err)
		}
		if got := d.ok("cat", "box", "/workspace/"+file); got != "one\ntwo\n" {
			t.Errorf("%s, cat: %q", when, got)
		}
		git := exec.Command("git", "apply", "-p2")
		git.Dir, git.Stdin = to, strings.NewReader(d.ok("diff", "box", file, link))
		if err := os.WriteFile(filepath.Join(to, file), []byte("one\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		said, err := git.CombinedOutput()
		if target, lerr := os.Readlink(filepath.Join(to, link)); err != nil || lerr != nil || target != "to\xfc" {
			t.Errorf("%s, diff: %v, %s, %q, %v", when, err, said, target, lerr)
		}
		if got := d.ok("diff", "--json", "box"); !strings.Contains(got, `/workspace/h\udcff.txt"`) || !strings.Contains(got, `"to\udcfc"`) {
			t.Errorf("%s, JSON: %s", when, got)
		}
		if when == "live" {
			d.ok("stop", "box")
		}
	}
	if got := d.ok("apply", "--yes", "--json", "box", file); !strings.Contains(got, `/workspace/h\udcff.txt"`) {
		t.Errorf("apply: %s", got)
	}
	if got, err := os.ReadFile(filepath.Join(work, file)); err != nil || string(got) != "one\ntwo\n" {
		t.Errorf("applied: %q, %v", got, err)
	}
}
