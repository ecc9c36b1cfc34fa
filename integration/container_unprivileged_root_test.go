//go:build root

package integration

import (
	"os"
	"strings"
	"testing"
)

// TestAContainerThatIsNotPrivileged: parts of /proc are masked, cgroups are read-only, and
// there are fewer capabilities. The image's entrypoint and clove handle that.
func TestAContainerThatIsNotPrivileged(t *testing.T) {
	h := newHost(t)
	entrypoint, err := os.ReadFile("../deploy/docker/entrypoint")
	if err != nil {
		t.Fatal(err)
	}
	out := inContainer(t, h, `
		cat >/srv/entrypoint <<-'EOF'
`+string(entrypoint)+`
		EOF
		chmod +x /srv/entrypoint
		mount --bind /dev/null /proc/interrupts
		mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys
		for at in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/self/mounts); do mount -o remount,bind,ro $at; done
		unshare --user --map-root-user --pid --mount --fork mount -t proc proc /mnt || echo control: covered
		clove run --rm -- true; echo control: read-only $?
		caps=+chown,+dac_override,+fowner,+kill,+mknod,+net_admin,+net_bind_service,+setgid,+setpcap,+setuid,+sys_admin,+sys_chroot,+sys_nice,+sys_ptrace
		setpriv --bounding-set=-all,$caps --inh-caps=-all /srv/entrypoint sh -c '
			clove doctor --json | `+foundStates+`
			clove run --rm --memory 64M -- python3 -c "x = bytearray(200 << 20)"; echo memory $?
			clove run --rm --allow 192.0.2.80 --timeout 1s -- sleep 60; echo timeout $?
			clove run --rm -- sh -c "cat /proc/self/comm; grep proc /proc/self/mountinfo"; echo own $?
			clove check && echo clean'`)
	wantAll(t, out, "control: covered\n", "is mounted read-only", "control: read-only 125\n"+nothingMissing, "memory limit of 64MiB reached", "memory 137\n",
		"timeout 124\n", "own 0\n", "clean\n")
	if strings.Contains(out, " - proc clove ") {
		t.Errorf("the agent sees the stage's proc\n%s", out)
	}
}
