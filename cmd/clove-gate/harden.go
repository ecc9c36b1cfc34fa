package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is one thing that takes something away from the process.
type step struct {
	name string
	do   func(uid int) error
}

// steps are in the only order that works; each says what it must precede.
var steps = []step{
	// First, or a launch without them would lose the host's own mounts.
	{"namespaces", func(int) error { return newNamespaces() }},
	// Needs /proc.
	{"descriptors", func(int) error { return closeInherited() }},
	{"rlimits", func(int) error { return setRlimits() }},
	// Needs SYS_ADMIN; everything below needs no file any more.
	{"root", func(int) error { return emptyRoot() }},
	// Needs SETPCAP, which the change of the user takes away.
	{"bounding set", func(int) error { return dropBounding() }},
	{"groups", func(int) error { return syscall.Setgroups(nil) }},
	{"gid", func(uid int) error { return syscall.Setresgid(uid, uid, uid) }},
	{"uid", func(uid int) error { return syscall.Setresuid(uid, uid, uid) }},
	{"capabilities", func(int) error { return dropCapabilities() }},
	// After the change of the user, which undoes these (prctl(2)).
	{"dumpable", func(int) error { return allThreads(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0) }},
	{"parent-death signal", func(int) error { return allThreads(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL)) }},
	{"no_new_privs", func(int) error { return allThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1) }},
	{"filter", func(int) error { return install(callFilter(os.Getpid())) }},
	{"probe", func(int) error { return probe() }},
}

// harden takes everything that the gate does not need. After an error the
// process must end.
func harden(uid int) error {
	for _, step := range steps {
		if err := step.do(uid); err != nil {
			return fmt.Errorf("cannot harden: %s: %w", step.name, err)
		}
	}
	return nil
}

// allThreads makes a call on every thread that Go has started.
func allThreads(trap, a1, a2 uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(trap, a1, a2, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// newNamespaces wants every namespace that clove makes for a gate to be another
// than its parent's. The mounted /proc is still that of the parent's pid
// namespace, where the parent has a number; getppid(2) says 0.
func newNamespaces() error {
	parent, err := parentInProc()
	if err != nil {
		return err
	}
	for _, kind := range []string{"net", "mnt", "pid", "ipc", "uts", "cgroup"} {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return err
		}
		other, err := os.Readlink("/proc/" + parent + "/ns/" + kind)
		if err != nil {
			return err
		}
		if other == own {
			return fmt.Errorf("the %s namespace is not new", kind)
		}
	}
	return nil
}

func parentInProc() (string, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
	parent, _, found := strings.Cut(rest, "\n")
	if !found || parent == "0" {
		return "", errors.New("the parent is not in /proc")
	}
	return parent, nil
}

// numberOfChannel finds the channel's own number, which wire.NewConn chose.
func numberOfChannel() (int, error) {
	for fd := channelFD; fd < 64; fd++ {
		kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		if err == nil && kind == unix.SOCK_SEQPACKET {
			return fd, nil
		}
	}
	return -1, errors.New("cannot find the channel: descriptor 3 is none")
}

// closeInherited closes what the launch may have left open. What Go opened, and
// the channel by now, is close-on-exec and so was not inherited.
func closeInherited() error {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := strconv.Atoi(name.Name())
		if err != nil || fd <= 2 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			unix.Close(fd)
		}
	}
	return nil
}

// threadsMax is far above what Go starts for GOMAXPROCS processors and calls
// that never block.
const threadsMax = 64

func setRlimits() error {
	var files unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &files); err != nil {
		return err
	}
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_NOFILE, files.Max}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_NPROC, threadsMax}, {unix.RLIMIT_MSGQUEUE, 0},
	} {
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.value, Max: limit.value}); err != nil {
			return err
		}
	}
	return nil
}

// emptyRoot leaves nothing to open. pivot_root(".", ".") stacks the old root on
// the new one, from where it is detached (pivot_root(2)).
func emptyRoot() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	const place = "/proc" // a folder that every host has
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	if err := unix.Mount("empty", place, "tmpfs", flags, "size=4k,nr_inodes=1,mode=555"); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	if err := unix.Chdir(place); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_RDONLY|flags, "size=4k,nr_inodes=1")
}

// dropBounding empties the bounding set. The kernel's own last capability ends
// the loop: it may know more than we do.
func dropBounding() error {
	for number := range uintptr(64) {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, number, 0, 0, 0); err == unix.EINVAL {
			return nil
		}
		if err := allThreads(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, number); err != nil {
			return err
		}
	}
	return nil
}

// dropCapabilities empties the inheritable set too, which the change of the
// user leaves, and with it the ambient set (capabilities(7)).
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return allThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])))
}

// probe tries what must fail: the filter is worth what it does, not what it
// says.
func probe() error {
	if fd, err := unix.Open("/", unix.O_PATH, 0); err != unix.EPERM {
		return fmt.Errorf("a folder could be opened: %d, %v", fd, err)
	}
	if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0); err != unix.EPERM {
		return fmt.Errorf("a socket could be made: %d, %v", fd, err)
	}
	if mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0); err != nil || mode != unix.SECCOMP_MODE_FILTER {
		return fmt.Errorf("no filter is on: %d, %v", mode, err)
	}
	return nil
}
