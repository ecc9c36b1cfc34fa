package netns

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// optionBytes bounds what a socket inside may hold besides its buffers: group memberships,
// IP options, control messages. The kernel charges this memory to no cgroup. The bound is
// about the size of a socket itself, which is charged.
const optionBytes = 8192

// boundOptions lowers net.core.optmem_max in this thread's namespace. Before Linux 6.8 only
// the host's namespace has it. Then the host's value applies, 20 KiB by default.
func boundOptions(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	now, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	if now > optionBytes {
		_ = os.WriteFile(path, []byte(strconv.Itoa(optionBytes)), 0)
	}
	return nil
}

// LowestPort is the first port that every user may listen on inside. No program serves port
// 1, which remains for the gate alone.
const LowestPort = gatePort + 1

// sysctls are those that the kernel's defaults have tighter than an agent needs in a network
// of its own: ports below 1024, and echo requests (icmp(7)) of every group that there can be.
var sysctls = []struct{ name, value string }{
	{portsName, strconv.Itoa(LowestPort)},
	{"ipv4/ping_group_range", "0 2147483647"},
}

const portsName = "ipv4/ip_unprivileged_port_start"

// setSysctls sets them, and bounds options, in the calling thread's namespace. It does so
// through a proc of its own that is mounted nowhere, because engines mount a container's
// /proc/sys read-only.
func setSysctls() error {
	proc, err := openProc()
	if err != nil {
		return fmt.Errorf("cannot open a proc for sysctls: %w", err)
	}
	defer unix.Close(proc)
	dir := fmt.Sprintf("/proc/self/fd/%d/sys/net/", proc)
	for _, s := range sysctls {
		if err := os.WriteFile(dir+s.name, []byte(s.value), 0); err != nil {
			return fmt.Errorf("cannot set the sysctl %s: %w", s.name, err)
		}
	}
	return boundOptions(dir + "core/optmem_max")
}

// openProc opens the root of a proc for the caller's pid namespace.
func openProc() (fd int, err error) {
	context, err := unix.Fsopen("proc", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(context)
	if err := unix.FsconfigCreate(context); err != nil {
		return -1, os.NewSyscallError("fsconfig", err)
	}
	fd, err = unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	return fd, os.NewSyscallError("fsmount", err)
}

// HostLowestPort is the same of the calling thread's namespace.
func HostLowestPort() (uint16, error) {
	text, err := os.ReadFile("/proc/sys/net/" + portsName)
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	return uint16(port), err
}
