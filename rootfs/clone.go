package rootfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// cloneFlags are the properties of a clone.
type cloneFlags struct {
	ReadOnly, Recursive bool
	Dir                 bool // whether the source must be a directory or must not be one
	NoLinks             bool // no link in it is followed
}

// clone returns a detached copy of the mount of source, a path without symbolic links. It
// is id-mapped unless m is empty, nosuid and nodev.
func (b *builder) clone(source string, m idMap, flags cloneFlags) (*os.File, error) {
	from, err := openSource(source, flags.Dir)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return b.cloneOpen(from, m, flags)
}

// cloneOpen is clone for an open file.
func (b *builder) cloneOpen(from *os.File, m idMap, flags cloneFlags) (*os.File, error) {
	source := from.Name()
	openFlags, setFlags := uint(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH), uint(unix.AT_EMPTY_PATH)
	if flags.Recursive {
		openFlags, setFlags = openFlags|unix.AT_RECURSIVE, setFlags|unix.AT_RECURSIVE
	}
	fd, err := unix.OpenTree(int(from.Fd()), "", openFlags)
	if err != nil {
		return nil, fmt.Errorf("cannot clone the mount of %s: %w", source, err)
	}
	clone := os.NewFile(uintptr(fd), source)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if flags.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if flags.NoLinks {
		attr.Attr_set |= unix.MOUNT_ATTR_NOSYMFOLLOW
	}
	if len(m.UID) > 0 {
		namespace, err := b.maps.get(m)
		if err != nil {
			clone.Close()
			return nil, err
		}
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(namespace.Fd())
	}
	// While the clone is detached: no process can reach it before it has its attributes, and
	// the kernel id-maps only mounts that are not attached yet.
	if err := unix.MountSetattr(fd, "", setFlags, &attr); err != nil {
		clone.Close()
		return nil, mapError(source, err)
	}
	return clone, nil
}

// openSource refuses symbolic links. The path was resolved and checked for the plan, and
// the owner of a directory on the way may have changed it since.
func openSource(source string, dir bool) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	if dir {
		how.Flags |= unix.O_DIRECTORY
	}
	if strings.HasPrefix(source, "/proc/self/fd/") {
		how.Resolve = 0 // a handle of clove's own, which is a magic link
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, source, &how)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", source, err)
	}
	return os.NewFile(uintptr(fd), source), nil
}

// openAs opens a directory or a regular file with a user's rights, in the mount namespace
// of the calling thread. If the user replaces the path meanwhile, the result is still a
// file that the user may read.
func openAs(source string, user nsthread.Identity, dir bool) (file *os.File, err error) {
	err = rightsOf(&user, nsthread.StartBesideAs, func() error {
		found, err := openSource(source, dir)
		if err == nil {
			defer found.Close()
			file, err = openRead(found)
		}
		if err != nil {
			return fmt.Errorf("as user %d: %w", user.UID, err)
		}
		return nil
	})
	return file, err
}

// openRead reopens for reading a file that was opened with O_PATH. Its type cannot change
// between the check and the open. Devices, pipes and sockets are refused: opening one calls
// a driver or reaches a program of the host.
func openRead(found *os.File) (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(found.Fd()), &stat); err != nil {
		return nil, err
	}
	if kind := stat.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return nil, fmt.Errorf("cannot open %s: it is neither a directory nor a regular file", found.Name())
	}
	// O_NONBLOCK: the owner may hold a lease on the file (fcntl(2)), for which the open would wait.
	fd, err := unix.Open(fdPath(found), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", found.Name(), err)
	}
	return os.NewFile(uintptr(fd), found.Name()), nil
}

// mapError names the file system that cannot be id-mapped; mount_setattr(2) only returns EINVAL.
func mapError(source string, err error) error {
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("cannot set the attributes of the mount of %s: %w", source, err)
	}
	kind := "its file system"
	mounts, infoErr := mountinfo.GetMounts(mountinfo.ParentsFilter(source))
	if infoErr == nil {
		longest := -1
		for _, m := range mounts {
			// The innermost mount, and of several at one place the last, which covers the
			// others.
			if len(m.Mountpoint) >= longest {
				longest, kind = len(m.Mountpoint), "the "+m.FSType+" file system at "+m.Mountpoint
			}
		}
	}
	return fmt.Errorf("%w of %s: %s, or one mounted below, cannot be id-mapped on this kernel: %w", ErrUnmappable, source, kind, err)
}

// ErrUnmappable means that the kernel cannot id-map a file system, overlayfs above all. An
// operation may have a fallback for it; the error is also reported if that fails.
var ErrUnmappable = errors.New("cannot map the owners")

// copyTree copies the directory from to the new directory to, with owners, links and holes.
// It follows no link. A user's copy runs with that user's rights, because the user may
// change the tree meanwhile.
func copyTree(from *os.File, to string, user *nsthread.Identity) error {
	ctx, cancel := context.WithTimeout(context.Background(), copyTime)
	defer cancel()
	// cp gets both directories as descriptors, so neither path can be replaced under it.
	// --one-file-system does not descend into mounts, as the overlay would not show them.
	cmd := exec.CommandContext(ctx, "cp", "-a", "-T", "--one-file-system", "--", "/proc/self/fd/3/.", "/proc/self/fd/4/.")
	// Closed to others until cp gives it the mode of the original.
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	if user != nil {
		if err := os.Chown(to, int(user.UID), int(user.GID)); err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user.UID, Gid: user.GID, Groups: user.Groups}}
	}
	made, err := os.Open(to)
	if err != nil {
		return err
	}
	defer made.Close()
	cmd.ExtraFiles = []*os.File{from, made}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot copy %s into the writable layer: %w: %s", from.Name(), err, firstLine(string(out)))
	}
	return nil
}

// copyTime bounds a copy, because a user could delay it for ever.
const copyTime = 10 * time.Minute

// attach mounts a detached mount at path. Paths of the stage lead through /proc/self/fd,
// which is a link: hence MOVE_MOUNT_T_SYMLINKS.
func attach(mount *os.File, path string) error {
	err := unix.MoveMount(int(mount.Fd()), "", unix.AT_FDCWD, path, unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS)
	if err != nil {
		return fmt.Errorf("cannot attach the mount of %s: %w", mount.Name(), err)
	}
	return nil
}

// mountExt4 mounts device at target. nobarrier: neither a crash nor fsync in the sandbox is
// worth a flush of the host's disk. noinit_itable: the inode tables must stay holes.
// noatime: reading must not write to the layer.
func mountExt4(device *os.File, target string, readOnly bool) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOATIME)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount(fdPath(device), target, "ext4", flags, "noinit_itable,nobarrier"); err != nil {
		return fmt.Errorf("cannot mount the layer on %s: %w", device.Name(), err)
	}
	return nil
}
