//go:build root

package gitpull

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/testhost"
)

// attempts are what code that took git over would try: each line is printed if it works.
const attempts = `cat /etc/passwd >/dev/null 2>&1 && echo reads the host
(: >"$1/config") 2>/dev/null && echo writes the repository
(: >"$1/objects/quarantine/x") 2>/dev/null && echo writes the quarantine
kill -0 "$2" 2>/dev/null && echo signals others
[ -e /sys/class/net/lo ] && echo sees the network
grep -q 'CapEff:.*[1-9a-f]' /proc/self/status 2>/dev/null && echo has capabilities
dd if=/dev/zero of="$1/objects/quarantine/big" bs=1M seek=17000 count=1 2>/dev/null && echo writes more than it may
true`

// Code that takes git over reaches only the quarantine, also as root. The control is the same
// code with the owner's ids alone.
func TestGitIsConfined(t *testing.T) {
	testhost.Root(t)
	for _, uid := range []uint32{0, 64001} {
		base, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		common, quarantine, empty := base+"/repo", base+"/repo/objects/quarantine", base+"/empty"
		for _, dir := range []string{empty, quarantine} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, err := range []error{os.WriteFile(common+"/config", nil, 0o644), os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o755)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, own := range []string{common, common + "/config", common + "/objects", quarantine} {
			if err := os.Chown(own, int(uid), int(uid)); err != nil {
				t.Fatal(err)
			}
		}
		victim := exec.Command("sleep", "60")
		victim.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
		pid := strconv.Itoa(victim.Process.Pid)
		b, err := newBox(empty, common, nsthread.Identity{UID: uid, GID: uid})
		if err != nil {
			t.Fatal(err)
		}
		defer b.close()
		if err := b.thread.Do(func() error { return b.show(quarantine, b.as, 0) }); err != nil {
			t.Fatal(err)
		}
		inside, err := b.git(context.Background(), "", strings.NewReader(""), nil, "-c", "alias.x=!f() { "+attempts+"; }; f", "x", common, pid)
		if err != nil || inside != "writes the quarantine" {
			t.Errorf("user %d: %q, %v", uid, inside, err)
		}
		control := exec.Command("sh", "-c", attempts, "sh", common, pid)
		control.SysProcAttr = victim.SysProcAttr
		out, err := control.CombinedOutput()
		for _, line := range strings.Split(attempts, "\n") {
			_, word, ok := strings.Cut(line, "echo ")
			if ok && (uid == 0 || !strings.HasPrefix(word, "has cap")) && !strings.Contains(string(out), word) {
				t.Errorf("control for user %d: not %q: %s, %v", uid, word, out, err)
			}
		}
	}
}
