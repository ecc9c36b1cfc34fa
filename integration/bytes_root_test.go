//go:build root

package integration

import (
	"os"
	"path/filepath"
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
