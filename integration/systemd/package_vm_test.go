//go:build vm

package systemd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// The life of the package: installed, upgraded with a live agent, removed and purged; nothing
// of it is left.
func TestSystemdPackageLife(t *testing.T) {
	install(t)
	if version := do(t, "clove", "version"); !strings.HasPrefix(version, "clove "+firstVersion) {
		t.Errorf("%s", version)
	}
	// From the package itself: the machine's image installs no documents.
	testhost.Licensed(t, sh(t, "dpkg-deb --fsys-tarfile "+deb(firstVersion)+" | tar -xO ./usr/share/doc/clove/third-party.gz | zcat"),
		"/usr/bin/clove", "/usr/sbin/cloved", "/usr/bin/clove-oci", "/usr/libexec/clove/clove-init", "/usr/libexec/clove/clove-gate")
	for unit, want := range map[string]string{"clove.service": "enabled", "clove.socket": "enabled"} {
		if got := do(t, "systemctl", "is-enabled", unit); got != want {
			t.Errorf("%s is %s", unit, got)
		}
	}
	if mode := do(t, "stat", "-c", "%a %U %G", "/run/clove/clove.sock"); mode != "660 root clove" {
		t.Errorf("the socket is %s", mode)
	}
	sh(t, "echo 'log_level: debug' >/etc/clove/clove.yaml")
	detach(t, "survivor", counting, "--memory", "64M")
	before, cloved := look(t, "survivor"), mainPID(t)
	t.Log(do(t, "dpkg", "-i", "--force-confdef", "--force-confold", deb(secondVersion)))
	goesOn(t, "survivor", before)
	if version := do(t, "clove", "version"); !strings.HasPrefix(version, "clove "+secondVersion) {
		t.Errorf("%s", version)
	}
	if now := mainPID(t); now == cloved || !strings.Contains(do(t, "readlink", "/proc/"+itoa(now)+"/exe"), "/usr/sbin/cloved") {
		t.Errorf("cloved is process %d and was %d", now, cloved)
	}
	// An old supervisor accepts the new clove's requests.
	if echo := do(t, "clove", "exec", "survivor", "--", "echo", "hello"); echo != "hello" {
		t.Errorf("exec says %q", echo)
	}
	if text := sh(t, "cat /etc/clove/clove.yaml"); text != "log_level: debug" {
		t.Errorf("the administrator's configuration is %q", text)
	}
	removeIt(t)
	purgeIt(t)
}

// Removal names the agents that it ends, and keeps the records.
func removeIt(t *testing.T) {
	t.Helper()
	supervisor := inspect(t, "survivor").Lease.SupervisorPID
	text := do(t, "dpkg", "-r", "clove")
	if !strings.Contains(text, "ending the agents") || !strings.Contains(text, "survivor") {
		t.Errorf("dpkg -r says %s", text)
	}
	if exists("/proc/" + itoa(supervisor)) {
		t.Error("the supervisor lives")
	}
	if !exists("/var/lib/clove/clove.db") || !exists("/etc/clove/clove.yaml") {
		t.Error("the records or the configuration are gone")
	}
}

func purgeIt(t *testing.T) {
	t.Helper()
	text := do(t, "dpkg", "-P", "clove")
	if !strings.Contains(text, "removing all records") {
		t.Errorf("dpkg -P says %s", text)
	}
	for _, pattern := range []string{"/var/lib/clove", "/etc/clove", "/run/clove", "/usr/libexec/clove", "/usr/share/doc/clove",
		"/etc/systemd/system/*/clove.*", "/lib/systemd/system/clove.*", "/lib/systemd/system/clove-agents*", "/sys/fs/cgroup/clove.slice/*/*", "/var/lib/systemd/deb-systemd-helper-enabled/*clove*"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if mounts := sh(t, "grep clove /proc/mounts || true"); mounts != "" {
		t.Errorf("mounts are left: %s", mounts)
	}
	if loops := sh(t, "grep -l clove /sys/block/loop*/loop/backing_file 2>/dev/null || true"); loops != "" {
		t.Errorf("loop devices are left: %s", loops)
	}
	if failed := do(t, "systemctl", "list-units", "--failed", "--plain", "--no-legend", "clove*"); failed != "" {
		t.Errorf("failed units: %s", failed)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
