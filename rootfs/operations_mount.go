package rootfs

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// makeDirOp makes the directory Path if it is missing. An existing one keeps its owner and mode.
type makeDirOp struct {
	Path     string
	Mode     uint32
	UID, GID uint32
}

func (s makeDirOp) String() string {
	return fmt.Sprintf("make directory %s %04o %d:%d", s.Path, s.Mode, s.UID, s.GID)
}

func (s makeDirOp) run(b *builder) error {
	dir, err := b.makeDir(s.Path, dirAttr{Mode: s.Mode, UID: s.UID, GID: s.GID})
	if err != nil {
		return err
	}
	return dir.Close()
}

// bindOp shows a host path at Target, which is made if it is missing. Map says as whom its
// owners appear inside. If its file system cannot be id-mapped (ErrUnmappable), a read-only
// bind is shown unmapped. A writable one is refused, because what the agent writes there
// would belong to an id of the host's. A user's recursive bind is always refused then, because
// submounts, /proc among them, would appear with their real owners.
type bindOp struct {
	Source, Target           string
	Map                      idMap
	Dir, ReadOnly, Recursive bool
	As                       *nsthread.Identity // whose rights open the source; nil: root's
}

func (s bindOp) idMap() idMap { return s.Map }

func (s bindOp) String() string {
	text := fmt.Sprintf("bind %s at %s, %s", s.Source, s.Target, s.Map)
	if s.Recursive {
		text += ", recursive"
	}
	if s.ReadOnly {
		text += ", read-only"
	}
	if s.As != nil {
		text += fmt.Sprintf(", as user %d", s.As.UID)
	}
	return text
}

// run clones the source before it makes the target, so that a source that cannot be mounted
// leaves no empty target.
func (s bindOp) run(b *builder) error {
	clone, err := s.clone(b)
	if err != nil {
		return err
	}
	defer clone.Close()
	var target *os.File
	if s.Dir {
		target, err = b.makeDir(s.Target, dirAttr{Mode: 0o755})
	} else {
		target, err = b.makeFile(s.Target)
	}
	if err != nil {
		return err
	}
	defer target.Close()
	return attach(clone, fdPath(target))
}

// clone is the source as the agent will see it, still detached.
func (s bindOp) clone(b *builder) (*os.File, error) {
	flags := cloneFlags{ReadOnly: s.ReadOnly, Recursive: s.Recursive, Dir: s.Dir}
	clone := func(m idMap) (*os.File, error) { return b.clone(s.Source, m, flags) }
	if s.As != nil {
		from, err := openAs(s.Source, *s.As, s.Dir)
		if err != nil {
			return nil, err
		}
		defer from.Close()
		clone = func(m idMap) (*os.File, error) { return b.cloneOpen(from, m, flags) }
	}
	made, err := clone(s.Map)
	if errors.Is(err, ErrUnmappable) && s.ReadOnly && (s.As == nil || !s.Recursive) {
		// Unmapped files appear as the user nobody's, so the agent reads only what every user of the host may read.
		b.tree.Unmapped = append(b.tree.Unmapped, s.Source)
		made, err = clone(idMap{})
	}
	return made, err
}

// tmpfsOp mounts an empty memory file system at Target. The agent's memory limit counts its
// pages, so Bytes is a second bound, and not the one that protects the host.
type tmpfsOp struct {
	Target string
	Bytes  int64
	Mode   uint32
	NoSwap bool
}

func (s tmpfsOp) String() string {
	text := fmt.Sprintf("tmpfs %s %04o of %d bytes", s.Target, s.Mode, s.Bytes)
	if s.NoSwap {
		text += ", without swap"
	}
	return text
}

func (s tmpfsOp) run(b *builder) error {
	target, err := b.makeDir(s.Target, dirAttr{Mode: 0o755})
	if err != nil {
		return err
	}
	defer target.Close()
	// The mount is made in the host's user namespace, so root inside is given by its host
	// id.
	options := fmt.Sprintf("size=%d,mode=%04o,uid=%d,gid=%d", s.Bytes, s.Mode, b.cfg.HostID, b.cfg.HostID)
	mount := func(more string) error {
		return unix.Mount("clove", fdPath(target), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options+more)
	}
	if !s.NoSwap {
		return mount("")
	}
	err = mount(",noswap") // Linux 6.4
	if errors.Is(err, unix.EINVAL) {
		if swaps, rerr := os.ReadFile("/proc/swaps"); rerr != nil || strings.Count(string(swaps), "\n") > 1 {
			return fmt.Errorf("cannot keep %s out of the host's swap: that takes Linux 6.4, or a host without swap (swapoff -a)", s.Target)
		}
		err = mount("")
	}
	return err
}

// scratchOp mounts a writable directory of the layer at Target, in a root that will be read-only.
type scratchOp struct {
	Target string
	Index  int
	// Direct: the path has no link in it. In a caller's root one could lead from a place
	// that stays writable to one that does not.
	Direct bool
}

func (s scratchOp) String() string {
	text := fmt.Sprintf("scratch %s, upper %d", s.Target, s.Index)
	if s.Direct {
		text += ", by no link"
	}
	return text
}

// run gives the new directory the owner and mode of the one that it covers: /tmp keeps its
// sticky bit.
func (s scratchOp) run(b *builder) error {
	target, err := b.makeDir(s.Target, dirAttr{Mode: 0o755})
	if err != nil {
		return err
	}
	defer target.Close()
	if s.Direct {
		if err := b.checkDirect(s.Target); err != nil {
			return err
		}
	}
	dir, _, err := b.upper(s.Index, s.Target, "", fdPath(target))
	if err != nil {
		return err
	}
	clone, err := b.clone(dir, idMap{}, cloneFlags{Dir: true})
	if err != nil {
		return err
	}
	defer clone.Close()
	return attach(clone, fdPath(target))
}

// sysOp builds /sys: what programs need to know about processors, and the mount point of
// the cgroup namespace's view. The rest of sysfs describes the host.
type sysOp struct{}

func (sysOp) String() string { return "sys" }

// sysDirs are what language runtimes use to size themselves: the processors and their
// caches, and the mode of transparent huge pages.
var sysDirs = []string{"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage"}

// run builds the tree on the stage and clones it read-only as a whole, so that the agent
// never sees it writable.
func (sysOp) run(b *builder) error {
	if err := os.MkdirAll(b.staged("sys", "fs", "cgroup"), 0o755); err != nil {
		return err
	}
	for _, dir := range sysDirs {
		if _, err := os.Stat(dir); err != nil {
			continue // not on every kernel
		}
		clone, err := b.clone(dir, idMap{}, cloneFlags{ReadOnly: true, Dir: true})
		if err != nil {
			return err
		}
		at := b.staged(dir[1:])
		if err = os.MkdirAll(at, 0o755); err == nil {
			err = attach(clone, at)
		}
		clone.Close()
		if err != nil {
			return err
		}
	}
	tree, err := b.clone(b.staged("sys"), idMap{}, cloneFlags{ReadOnly: true, Recursive: true, Dir: true})
	if err != nil {
		return err
	}
	defer tree.Close()
	target, err := b.makeDir("/sys", dirAttr{Mode: 0o755})
	if err != nil {
		return err
	}
	defer target.Close()
	return attach(tree, fdPath(target))
}

// procOp mounts a full /proc in the launch's mount namespace. The kernel lets a user
// namespace mount a proc of its own only where one without covered parts is visible
// (mount_too_revealing in fs/namespace.c), and engines cover parts of a container's. It is
// on the stage, so the agent never sees it: libcontainer changes the root away from there.
type procOp struct{}

func (procOp) String() string { return "whole proc" }

func (procOp) run(b *builder) error {
	at := b.staged("proc")
	if err := os.Mkdir(at, 0o700); err != nil {
		return err
	}
	return unix.Mount("clove", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// sealOp makes one overlay of the root read-only, after all mount points in it were made.
// Without AT_RECURSIVE, mount_setattr(2) does not change the mounts below: scratch
// directories stay writable.
type sealOp struct{ Target string }

func (s sealOp) String() string { return "seal " + s.Target }

func (s sealOp) run(b *builder) error {
	target, err := b.makeDir(s.Target, dirAttr{Mode: 0o755})
	if err != nil {
		return err
	}
	defer target.Close()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return unix.MountSetattr(int(target.Fd()), "", unix.AT_EMPTY_PATH, &attr)
}
