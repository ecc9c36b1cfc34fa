package rootfs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// noexecOp takes execution from every mount of the root. No file of such a mount is executed,
// nor mapped as code (mount(2), MS_NOEXEC), so a loader cannot be told to load it either.
type noexecOp struct{}

func (noexecOp) String() string { return "no execution" }

func (noexecOp) run(b *builder) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOEXEC}
	return unix.MountSetattr(int(b.root.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

// executeOp mounts a file or a directory over itself, read-only, so that it can be executed at
// this path and at no other: the mount decides, not the file, so another link to it does not help.
type executeOp struct {
	Path string
	Dir  bool
}

func (s executeOp) String() string {
	if s.Dir {
		return "execution of " + s.Path + " and all in it"
	}
	return "execution of " + s.Path
}

// run opens the path without links: it was resolved for the plan.
func (s executeOp) run(b *builder) error {
	how := unix.OpenHow{Flags: unix.O_PATH, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS}
	if s.Dir {
		how.Flags |= unix.O_DIRECTORY
	}
	file, err := openat2(int(b.root.Fd()), s.Path, &how)
	if err != nil {
		return insideError(s.Path, err)
	}
	defer file.Close()
	fd, err := unix.OpenTree(int(file.Fd()), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("cannot clone the mount of %s: %w", s.Path, err)
	}
	clone := os.NewFile(uintptr(fd), s.Path)
	defer clone.Close()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Attr_clr: unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("cannot set the attributes of the mount of %s: %w", s.Path, err)
	}
	return attach(clone, fdPath(file))
}
