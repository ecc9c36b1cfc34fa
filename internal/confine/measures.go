package confine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// measure removes one right or resource from the process.
type measure struct {
	name string
	do   func(p process) error
	root bool // it takes what root has: a process that is started by another user is left without it
}

// process is what the program's arguments and the program itself say.
type process struct {
	uid       int    // 0: it keeps its user, who is not root
	journal   int    // its descriptor; 0: the process ends with its parent
	fileBytes uint64 // that it may write into a file
}

// measures are in the only order that works. The comments say what depends on the order.
var measures = []measure{
	// First: in the host's mount namespace, the measure "root" would detach the host's root.
	{"namespaces", func(process) error { return newNamespaces() }, true},
	// Before the root changes: it needs /proc. The channel is close-on-exec by now.
	{"descriptors", func(process) error { return descriptor.CloseInherited(unix.Stderr) }, false},
	{"rlimits", func(p process) error { return p.setRlimits() }, false},
	// Needs CAP_SYS_ADMIN. The later steps need no file.
	{"root", func(process) error { return emptyRoot() }, true},
	// Needs CAP_SETPCAP, which the change of the user removes.
	{"bounding set", func(process) error { return dropBounding() }, true},
	// Groups before the user: without CAP_SETGID they could not be changed any more.
	{"groups", func(process) error { return syscall.Setgroups(nil) }, true},
	{"gid", func(p process) error { return syscall.Setresgid(p.uid, p.uid, p.uid) }, true},
	{"uid", func(p process) error { return syscall.Setresuid(p.uid, p.uid, p.uid) }, true},
	// The change from id 0 has cleared the permitted and effective sets, but not the
	// inheritable one.
	{"capabilities", func(process) error { return dropCapabilities() }, false},
	// After the change of the user, which resets both (prctl(2)).
	{"dumpable", func(process) error { return allThreads(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0) }, false},
	{"parent-death signal", func(p process) error { return p.endWithParent() }, false},
	{"no_new_privs", func(process) error { return allThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1) }, false},
	// After no_new_privs, without which only CAP_SYS_ADMIN may load a filter (seccomp(2)).
	{"filter", func(process) error { return install(callFilter(os.Getpid())) }, false},
	// Last: it tests what the measures before it have set.
	{"probe", func(process) error { return probe() }, false},
}

// Own is the argument of a program that a user other than root starts for itself, in place of an id.
const Own = "own"

// parse reads a program's arguments: the host's user id, and so the group's, and the descriptor
// of its journal, if it has one. It refuses to serve where people started the program.
func parse(arguments []string) (p process, err error) {
	if len(arguments) == 1 && arguments[0] == Own {
		if os.Geteuid() == 0 || os.Getuid() == 0 {
			return p, errors.New("root starts this program with an id")
		}
		return p, nil
	}
	// Pid 1 proves a new pid namespace, which clove alone makes.
	if os.Getpid() != 1 || len(arguments) < 1 || len(arguments) > 2 {
		return p, errors.New("this program is started by clove only")
	}
	// Not 0: the process must not keep root's id, and setresuid(0) would silently do so.
	uid, err := strconv.ParseUint(arguments[0], 10, 31)
	if err != nil || uid == 0 {
		return p, fmt.Errorf("cannot use %q as user id", arguments[0])
	}
	p.uid = int(uid)
	if len(arguments) == 2 {
		fd, err := strconv.ParseUint(arguments[1], 10, 16)
		if err != nil || fd < FirstFD {
			return p, fmt.Errorf("cannot use %q as descriptor", arguments[1])
		}
		p.journal = int(fd)
	}
	return p, nil
}

// endWithParent has the kernel end a process without a journal when its parent is gone.
func (p process) endWithParent() error {
	if p.journal != 0 {
		return nil
	}
	return allThreads(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
}

// takeRights takes the measures, in their order.
func takeRights(p process) error {
	for _, measure := range measures {
		if measure.root && p.uid == 0 {
			continue
		}
		if err := measure.do(p); err != nil {
			return fmt.Errorf("cannot harden: %s: %w", measure.name, err)
		}
	}
	return nil
}

// allThreads makes the call on every thread that Go has started: credentials and these
// prctl settings belong to a thread.
func allThreads(trap, a1, a2 uintptr) error {
	if _, _, errno := syscall.AllThreadsSyscall6(trap, a1, a2, 0, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// newNamespaces checks that each namespace differs from the parent's. The mounted /proc is
// still that of the parent's pid namespace, in which the parent has a pid; getppid(2)
// returns 0.
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

// parentInProc returns the parent's pid as the mounted /proc shows it.
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

const (
	// channelFD is the descriptor of the channel to the parent: the first one after the
	// standard streams, where exec.Cmd.ExtraFiles puts it.
	channelFD = 3
	// FirstFD is the first one of the program's own files, if its parent gave it some.
	FirstFD = channelFD + 1
)

// threadsMax is far above the number of threads that Go starts for GOMAXPROCS processors
// and system calls that never block.
const threadsMax = 64

// setRlimits also raises the soft limit of open files to the hard one: each connection
// takes several descriptors, and the gate admits no more than it has descriptors for.
func (p process) setRlimits() error {
	var files unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &files); err != nil {
		return err
	}
	// A core dump would hold what the agent sends, or a key. RLIMIT_NPROC counts threads of the user
	// id, which no other process has. A file size of 0 makes every write to a regular file
	// fail; the one file that may be open is the journal.
	for _, limit := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_NOFILE, files.Max}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_FSIZE, p.fileBytes}, {unix.RLIMIT_NPROC, threadsMax}, {unix.RLIMIT_MSGQUEUE, 0},
	} {
		if limit.resource == unix.RLIMIT_NPROC && p.uid == 0 {
			continue // the user has other processes, which count
		}
		if err := unix.Setrlimit(limit.resource, &unix.Rlimit{Cur: limit.value, Max: limit.value}); err != nil {
			return err
		}
	}
	return nil
}

// emptyRoot changes the root to an empty, read-only tmpfs. pivot_root(".", ".") stacks the
// old root on the new one, from where it is detached (pivot_root(2)).
func emptyRoot() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	// Any directory that every host has would do: the mount covers it in this namespace only.
	const place = "/proc"
	// pivot_root refuses a root that is shared, and the mounts below must not propagate to
	// the host.
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
	// A remount sets all flags anew, so those of the first mount are repeated.
	return unix.Mount("", "/", "", unix.MS_REMOUNT|unix.MS_RDONLY|flags, "size=4k,nr_inodes=1")
}

// dropBounding empties the bounding set. EINVAL ends the loop at the kernel's last
// capability, which this build may not know.
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

// dropCapabilities also empties the inheritable set, which the change of the user keeps,
// and thereby the ambient set (capabilities(7)).
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return allThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])))
}

// probe tries calls that must fail, to test the effect of the filter and not only its loading.
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
