// Package beneath opens files in a tree that an untrusted process can change, by
// openat2(2), so that no link leads out of the tree.
//
// It refuses files of the kernel's own file systems.
package beneath

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// Open opens path as a process with that root directory would: links are resolved
// inside root and never lead out. Magic links of proc, which would, are refused. The
// path may be changed by an untrusted process at any time.
func Open(root *os.File, path string, flags uint64) (*os.File, error) {
	return openat2(root, path, flags, unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS)
}

// OpenChild opens path below dir; a path with a link in it is refused.
func OpenChild(dir *os.File, path string, flags uint64) (*os.File, error) {
	return openat2(dir, path, flags, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS)
}

// OpenPlace opens path below dir for looking at it, a link as the link itself.
func OpenPlace(dir *os.File, path string) (*os.File, error) {
	return openat2(dir, path, unix.O_PATH|unix.O_NOFOLLOW, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
}

// openat2 opens path below dir by the rules of resolve (openat2(2)), and checks what it is.
func openat2(dir *os.File, path string, flags, resolve uint64) (*os.File, error) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: resolve}
	fd, err := descriptor.Openat2(int(dir.Fd()), path, &how)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	// Of the open file and not of the path, which may lead elsewhere by now.
	if err := checkFilesystem(file); err != nil {
		file.Close()
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return file, nil
}

// errPseudo says that a path is in one of the kernel's own file systems, whose files
// have effects: /proc/1/mem, read as root, is another process's memory.
var errPseudo = fmt.Errorf("it is the kernel's and no file: %w", unix.EPERM)

// pseudo are the kernel's own file systems, by their magic numbers of statfs(2).
var pseudo = []int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
	unix.DEVPTS_SUPER_MAGIC, mqueueMagic, unix.SECURITYFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC,
	unix.BPF_FS_MAGIC, unix.NSFS_MAGIC}

// mqueueMagic is MQUEUE_MAGIC of the kernel's ipc/mqueue.c.
const mqueueMagic = 0x19800202

// checkFilesystem refuses files of the kernel's own file systems. RESOLVE_NO_XDEV would
// refuse them, too, and with them a sandbox's own mounts, such as a tmpfs or the target of
// -v.
func checkFilesystem(file *os.File) error {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &s); err != nil {
		return err
	}
	if slices.Contains(pseudo, s.Type) {
		return errPseudo
	}
	return nil
}

// Reopen opens a place that was opened with O_PATH and checked: it is the same file,
// whatever has its name now. O_NONBLOCK, because the open of a FIFO would wait for its
// other side.
func Reopen(place *os.File, flags int) (*os.File, error) {
	return os.OpenFile("/proc/thread-self/fd/"+strconv.Itoa(int(place.Fd())), flags|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
}
