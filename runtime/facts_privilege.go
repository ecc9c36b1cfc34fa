package runtime

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// findPrivilege: root of a container may lack what root of a host has, and then
// the first thing to fail would be some mount or ioctl that explains nothing.
func findPrivilege(*facts) (found, missing string) {
	if os.Geteuid() != 0 {
		return "", fmt.Sprintf("running as uid %d", os.Geteuid())
	}
	for name, capability := range map[string]int{"CAP_SYS_ADMIN": unix.CAP_SYS_ADMIN, "CAP_NET_ADMIN": unix.CAP_NET_ADMIN} {
		if !hasCapability(capability) {
			return "", "root without " + name + "; give it, in Docker with --privileged"
		}
	}
	if !inFirstUserNamespace() {
		return "", "root of a user namespace, which may mount no layer; start the container without one, in Docker with --userns=host"
	}
	if hasCapability(unix.CAP_SYS_RESOURCE) {
		return "root", ""
	}
	return "root without CAP_SYS_RESOURCE: hard rlimits cannot be raised", ""
}

// firstUserNamespace is the inode of the user namespace that the kernel boots
// with, USER_NS_INIT_INO in linux/nsfs.h.
const firstUserNamespace = 0xEFFFFFFD

func inFirstUserNamespace() bool {
	var own unix.Stat_t
	return unix.Stat("/proc/self/ns/user", &own) == nil && own.Ino == firstUserNamespace
}

// hasCapability tells whether this process holds a capability, capget(2).
func hasCapability(capability int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}
