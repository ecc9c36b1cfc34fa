package rootfs

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

// makeDirStep makes sure that a directory stands at Path. An existing one
// keeps its owner and mode.
type makeDirStep struct {
	Path     string
	Mode     uint32
	UID, GID uint32
}

func (s makeDirStep) String() string {
	return fmt.Sprintf("make directory %s %04o %d:%d", s.Path, s.Mode, s.UID, s.GID)
}

func (s makeDirStep) run(b *builder) error {
	dir, err := b.makeDir(s.Path, dirAttr{Mode: s.Mode, UID: s.UID, GID: s.GID})
	if err != nil {
		return err
	}
	return dir.Close()
}

// bindStep shows a host path at Target, which is made in the skeleton's overlay
// if need be. Map says as whom its owners appear inside; a path whose file system
// cannot be mapped (ErrUnmappable) is shown unmapped if it is read-only, else
// refused: what the agent writes there would belong to an id of the host's. For a
// user it is always refused: submounts, /proc among them, would show as they are.
type bindStep struct {
	Source, Target           string
	Map                      idMap
	Dir, ReadOnly, Recursive bool
	As                       *nsthread.Identity // whose rights the source is opened with; nil: root's
}

func (s bindStep) idMap() idMap { return s.Map }

func (s bindStep) String() string {
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

func (s bindStep) run(b *builder) error {
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

// clone is the source as the agent will have it, still detached.
func (s bindStep) clone(b *builder) (*os.File, error) {
	flags := cloneFlags{ReadOnly: s.ReadOnly, Recursive: s.Recursive, Dir: s.Dir}
	if s.As != nil {
		from, err := openAs(s.Source, *s.As, s.Dir)
		if err != nil {
			return nil, err
		}
		defer from.Close()
		return b.cloneOpen(from, s.Map, flags)
	}
	clone, err := b.clone(s.Source, s.Map, flags)
	if errors.Is(err, ErrUnmappable) && s.ReadOnly {
		// Nobody's files: the agent reads what every user of the host may read.
		b.tree.Unmapped = append(b.tree.Unmapped, s.Source)
		clone, err = b.clone(s.Source, idMap{}, flags)
	}
	return clone, err
}

// tmpfsStep mounts an empty memory file system at Target. Its pages are charged to
// the agent, so Bytes is a second bound and not the one that protects the host.
type tmpfsStep struct {
	Target string
	Bytes  int64
	Mode   uint32
}

func (s tmpfsStep) String() string {
	return fmt.Sprintf("tmpfs %s %04o of %d bytes", s.Target, s.Mode, s.Bytes)
}

func (s tmpfsStep) run(b *builder) error {
	target, err := b.makeDir(s.Target, dirAttr{Mode: 0o755})
	if err != nil {
		return err
	}
	defer target.Close()
	options := fmt.Sprintf("size=%d,mode=%04o,uid=%d,gid=%d", s.Bytes, s.Mode, b.cfg.HostID, b.cfg.HostID)
	return unix.Mount("clove", fdPath(target), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// scratchStep mounts a writable directory of the layer at Target, where the
// root around it is going to be read-only.
type scratchStep struct {
	Target string
	Index  int
}

func (s scratchStep) String() string { return fmt.Sprintf("scratch %s, upper %d", s.Target, s.Index) }

func (s scratchStep) run(b *builder) error {
	target, err := b.makeDir(s.Target, dirAttr{Mode: 0o755})
	if err != nil {
		return err
	}
	defer target.Close()
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

// sysStep builds /sys: what programs ask about processors, and the mount point
// for the cgroup namespace's view. The rest of sysfs tells about the host.
type sysStep struct{}

func (sysStep) String() string { return "sys" }

// sysDirs are what runtimes size themselves by: the number of processors and their
// caches, and whether huge pages come by themselves.
var sysDirs = []string{"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage"}

func (sysStep) run(b *builder) error {
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

// procStep has a /proc without covers in the launch's mount namespace. The kernel
// lets a user namespace mount a proc of its own only where a whole one is to be seen
// (mount_too_revealing in fs/namespace.c), and an engine covers parts of a container's.
// It lies on the stage, so the agent never sees it: libcontainer pivots away from there.
type procStep struct{}

func (procStep) String() string { return "whole proc" }

func (procStep) run(b *builder) error {
	at := b.staged("proc")
	if err := os.Mkdir(at, 0o700); err != nil {
		return err
	}
	return unix.Mount("clove", at, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// sealStep makes one overlay of the root read-only, after all mount points in
// it were made. mount_setattr(2) on the overlay alone leaves what is mounted in
// it as it is: scratch directories stay writable.
type sealStep struct{ Target string }

func (s sealStep) String() string { return "seal " + s.Target }

func (s sealStep) run(b *builder) error {
	target, err := b.makeDir(s.Target, dirAttr{Mode: 0o755})
	if err != nil {
		return err
	}
	defer target.Close()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return unix.MountSetattr(int(target.Fd()), "", unix.AT_EMPTY_PATH, &attr)
}
