package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// resolveTries is how often a path is looked up again when the agent moves
// things meanwhile: openat2(2) says EAGAIN when it cannot tell whether ".." led
// out.
const resolveTries = 64

// openBeneath opens path with the agent's root as its own: links lead to where
// they lead for the agent, and never out; those of /proc, which lead anywhere,
// lead nowhere.
func openBeneath(root *os.File, path string, flags uint64) (*os.File, error) {
	return openat2(root, path, flags, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
}

// openChild opens one path below dir, none of whose parts may be a link.
func openChild(dir *os.File, path string, flags uint64) (*os.File, error) {
	return openat2(dir, path, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
}

func openat2(dir *os.File, path string, flags, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	var fd int
	err := error(unix.EAGAIN)
	for tries := 0; tries < resolveTries && (err == unix.EAGAIN || err == unix.EINTR); tries++ {
		fd, err = unix.Openat2(int(dir.Fd()), path, &how)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	if err := ofFiles(file); err != nil {
		file.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return file, nil
}

// errPseudo says that a path is in a file system of the kernel's, where files
// are not what they seem: reading /proc/1/mem as root would be no copy.
var errPseudo = fmt.Errorf("it is the kernel's and no file: %w", unix.EPERM)

// pseudo are the kernel's own file systems, by their magic numbers of statfs(2).
var pseudo = []int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
	unix.DEVPTS_SUPER_MAGIC, mqueueMagic, unix.SECURITYFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
	unix.BPF_FS_MAGIC, unix.NSFS_MAGIC}

// mqueueMagic is MQUEUE_MAGIC of the kernel's ipc/mqueue.c.
const mqueueMagic = 0x19800202

func ofFiles(file *os.File) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &s); err != nil {
		return err
	}
	if slices.Contains(pseudo, s.Type) {
		return errPseudo
	}
	return nil
}

// reopen makes a file of a place that was opened with O_PATH and looked at: it
// is the same one, whatever has its name now.
func reopen(place *os.File, flags int) (*os.File, error) {
	return os.OpenFile("/proc/thread-self/fd/"+strconv.Itoa(int(place.Fd())), flags|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}

// becomeAgent gives the calling thread, which must be locked and never be used
// again for anything else, the agent's ids for files. The kernel takes the
// capabilities over files away with the id (capabilities(7)), so that what the
// thread opens is what the agent could, whatever it makes a path lead to.
func becomeAgent(uid, gid uint32) error {
	// Raw: x/sys would change every thread.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		return fmt.Errorf("cannot drop groups: %w", errno)
	}
	unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0)
	unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	// setfsuid(2) reports nothing but the id before: ask again with one that
	// cannot be, which changes nothing.
	const none = ^uintptr(0)
	nowGID, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, none, 0, 0)
	nowUID, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, none, 0, 0)
	if uint32(nowUID) != uid || uint32(nowGID) != gid {
		return fmt.Errorf("cannot take the agent's ids: they are %d and %d", nowUID, nowGID)
	}
	return nil
}

// copyFailed says what the kernel had against a path.
func copyFailed(path string, err error) error {
	var known *agent.Error
	if errors.As(err, &known) {
		return err
	}
	kind, hint := agent.KindInternal, ""
	switch {
	case isAny(err, unix.ENOENT, unix.ENOTDIR):
		kind, hint = agent.KindNotFound, "paths are the agent's: `clove exec NAME ls -l PATH` shows what is there"
	case isAny(err, unix.EACCES, unix.EPERM, unix.EROFS):
		kind, hint = agent.KindPrivilege, "a copy may read and write what the agent may"
	case isAny(err, unix.ELOOP, unix.EXDEV, unix.EISDIR, unix.EEXIST, unix.ENAMETOOLONG):
		kind = agent.KindInvalid
	case isAny(err, unix.ENOSPC, unix.EDQUOT):
		kind, hint = agent.KindConflict, "the agent's disk is full: --disk is its size"
	}
	return &agent.Error{Kind: kind, Step: "copy", Message: "cannot copy " + path, Hint: hint, Err: err}
}

func isAny(err error, numbers ...unix.Errno) bool {
	return slices.ContainsFunc(numbers, func(n unix.Errno) bool { return errors.Is(err, n) })
}
