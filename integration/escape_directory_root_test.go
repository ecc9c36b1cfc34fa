//go:build root

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoDescriptorLeadsOut: if clove forgot to close a directory of the host, a working
// directory named by that descriptor would be outside (CVE-2024-21626 of runc), and ".." would
// lead to every file.
func TestNoDescriptorLeadsOut(t *testing.T) {
	d := newCloved(t)
	program, secret := probeProgram(t), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of the host\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	climb := strings.Repeat("../", 12) + secret[1:]
	// Control: from a directory of the host that path leads to the file.
	outside := exec.Command(program, "read", climb)
	outside.Dir = "/sys/fs/cgroup"
	if text, err := outside.Output(); err != nil || !attacked(t, text)["read "+climb].OK {
		t.Fatalf("control: %s, %v", text, err)
	}
	d.detach("host", "sleep 1000", withProbe(program)...)
	inside := d.clove("exec", "host", probeInside, "read", "/etc/hosts")
	if !attacked(t, []byte(inside.stdout))["read /etc/hosts"].OK {
		t.Fatalf("control: the probe does not run inside: %+v", inside)
	}
	for fd := 3; fd < 14; fd++ {
		directory := fmt.Sprintf("/proc/self/fd/%d", fd)
		for name, r := range map[string]result{
			"run":  d.clove(append(append([]string{"run", "--rm", "--workdir", directory}, withProbe(program)...), "--", probeInside, "read", climb)...),
			"exec": d.clove("exec", "--workdir", directory, "host", probeInside, "read", climb),
		} {
			if strings.Contains(r.stdout, `"ok":true`) {
				t.Errorf("%s in %s: %s", name, directory, r.stdout)
			}
		}
	}
}
