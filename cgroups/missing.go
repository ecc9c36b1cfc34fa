package cgroups

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// lack says why a controller cannot be enforced on this host, and what to do.
type lack struct{ reason, remedy string }

// Has reports whether limits of controller ("memory", "cpu", "cpuset", "pids", "io",
// "cpuacct", "devices", "freezer") can be enforced on agents here.
func (h *Host) Has(controller string) bool { return h.Missing(controller) == "" }

// Missing returns "" where Has is true, else the reason and a remedy. It reads the file
// system each time, because mounts and delegation change while a daemon runs.
func (h *Host) Missing(controller string) string {
	find := h.missingV1
	if h.mode == ModeV2 {
		find = h.missingV2
	}
	if l := find(controller); l != nil {
		return l.reason + "; " + l.remedy
	}
	return ""
}

// SwapAccounting reports whether swap can be limited separately from memory.
func (h *Host) SwapAccounting() bool {
	if !h.Has("memory") {
		return false
	}
	if h.mode != ModeV2 {
		return exists(h.trees["memory"].base, "memory.memsw.limit_in_bytes")
	}
	// The root cgroup never has the file, so look at its children. If none has the memory
	// controller yet, nothing is known; kernels since 6.1 always account swap.
	limited, err := filepath.Glob(filepath.Join(h.trees[unified].mount, "*", "memory.max"))
	return err != nil || len(limited) == 0 || exists(filepath.Dir(limited[0]), "memory.swap.max")
}

// missingV1 asks in the order in which the answers exclude each other: without a mount
// nothing is known of the directory in it. "io" is called blkio on v1.
func (h *Host) missingV1(name string) *lack {
	if name == "io" {
		name = "blkio"
	}
	t, mounted := h.trees[name]
	if !mounted {
		return h.unmountedV1(name)
	}
	if t.foreign {
		return &lack{fmt.Sprintf("clove's own cgroup is not visible below %s (another cgroup namespace)", t.mount),
			"start clove where /sys/fs/cgroup shows its own cgroup, in Docker with --cgroupns=host"}
	}
	return t.unwritable(t.base)
}

// unmountedV1 distinguishes a controller that the kernel's command line turned off, because
// mounting it would fail.
func (h *Host) unmountedV1(name string) *lack {
	if h.disabled[name] {
		return &lack{fmt.Sprintf("the %s controller is disabled on the kernel command line", name),
			fmt.Sprintf("remove cgroup_disable=%s from it, or add cgroup_enable=%s, and reboot", name, name)}
	}
	return &lack{fmt.Sprintf("the %s controller is not mounted", name),
		"boot with systemd.unified_cgroup_hierarchy=1 (cgroup v2), or mount it: " +
			fmt.Sprintf("mkdir -p %s/%s && mount -t cgroup -o %s none %s/%s", mountRoot, name, name, mountRoot, name)}
}

// builtinV2 are not controllers on v2 but properties of every cgroup; device rules are BPF
// programs.
var builtinV2 = []string{"cpuacct", "devices", "freezer"}

// missingV2 asks first whether the tree can be written at all, because that concerns every
// controller and has one remedy.
func (h *Host) missingV2(controller string) *lack {
	t := h.trees[unified]
	if l := t.unwritable(t.base); l != nil {
		return l
	}
	if slices.Contains(builtinV2, controller) {
		return nil
	}
	offered, err := readFields(t.mount, "cgroup.controllers")
	if err != nil || !slices.Contains(offered, controller) {
		return &lack{fmt.Sprintf("%s does not offer the %s controller (cgroup.controllers has %q)",
			t.mount, controller, strings.Join(offered, " ")),
			fmt.Sprintf("boot with cgroup_enable=%s; in a container, delegate it (Docker: --privileged --cgroupns=host)", controller)}
	}
	return t.undelegable(controller)
}

// undelegable reports why controller cannot be enabled for children of the mount. Processes
// that Prepare can move away do not prevent it. Processes of another pid namespace do: they
// are listed as 0, and 0 written to cgroup.procs means the writer.
func (t tree) undelegable(controller string) *lack {
	enabled, err := readFields(t.mount, "cgroup.subtree_control")
	if err == nil && slices.Contains(enabled, controller) || isRealRoot(t.mount) {
		return nil
	}
	if pids, err := readPids(t.mount); err == nil && !slices.Contains(pids, 0) {
		return nil
	}
	return &lack{fmt.Sprintf("%s holds processes that are not visible here, so %s cannot be enabled below it", t.mount, controller),
		fmt.Sprintf("move them to %s/%s from where they are visible, or start the container with --cgroupns=host", t.mount, leafV2)}
}

// unwritable reports why clove cannot make cgroups in dir. access(2) reports EROFS to root
// as well, although root passes every check of modes.
func (t tree) unwritable(dir string) *lack {
	if t.readOnly {
		return &lack{fmt.Sprintf("%s is mounted read-only", t.mount),
			fmt.Sprintf("mount -o remount,rw %s, or start the container with --privileged", t.mount)}
	}
	switch err := unix.Access(dir, unix.W_OK); err {
	case nil:
		return nil
	case unix.EROFS:
		return &lack{fmt.Sprintf("%s is read-only", dir),
			fmt.Sprintf("mount -o remount,rw %s, or start the container with --privileged", t.mount)}
	case unix.ENOENT:
		return &lack{fmt.Sprintf("clove's own cgroup %s is not visible", dir),
			"start clove where /sys/fs/cgroup shows its own cgroup, in Docker with --cgroupns=host"}
	default:
		return &lack{fmt.Sprintf("%s is not writable for uid %d (%s)", dir, os.Geteuid(), err),
			"run clove as root"}
	}
}
