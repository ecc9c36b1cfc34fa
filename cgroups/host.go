package cgroups

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// Mode is the layout of this host's cgroups, as the record shows it.
type Mode string

// The modes. In ModeHybrid the controllers are on v1 hierarchies and a v2 tree
// without controllers is mounted beside them.
const (
	ModeV2     Mode = "v2"
	ModeHybrid Mode = "hybrid"
	ModeV1     Mode = "v1"
)

// libcontainer fixes these two mount points. clove must use the same ones: a limit written
// to a tree elsewhere would not apply to the agent.
const (
	mountRoot    = "/sys/fs/cgroup"
	mountUnified = "/sys/fs/cgroup/unified"
)

// unified is the key of the v2 tree in Placement.Paths, as in libcontainer.
const unified = ""

// Host is the result of Detect. It is immutable and safe for concurrent use.
type Host struct {
	mode  Mode
	trees map[string]tree // by controller; unified and "name=systemd" included
	// disabled holds the controllers that the kernel's command line turned off.
	disabled map[string]bool
	own      string // clove's own cgroup in one of the hierarchies; empty: unknown
}

// tree is one mounted hierarchy as one controller sees it.
type tree struct {
	mount    string // mount point
	base     string // directory in which the parent of all agents is made
	readOnly bool
	foreign  bool // clove's own cgroup is not visible below mount, so base is unknown
}

// ErrNoCgroups means that no cgroup file system is mounted where libcontainer
// looks for one, so no limit can hold.
var ErrNoCgroups = errors.New("no cgroup file system is mounted below " + mountRoot)

// Detect reads this host's layout. It fails where /proc cannot be read, and
// with ErrNoCgroups.
func Detect() (*Host, error) { return detect("/") }

// detect reads below root, so that tests can describe a host with plain files.
func detect(root string) (*Host, error) {
	mounts, err := readMounts(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	own, err := readOwn(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil, err
	}
	h := &Host{trees: map[string]tree{}, disabled: readDisabled(filepath.Join(root, "proc/cgroups"))}
	switch h.mode = modeOf(mounts); h.mode {
	case ModeV2:
		h.trees[unified] = unifiedTree(root, topmost(mounts, mountRoot))
	case ModeHybrid:
		h.trees[unified] = unifiedTree(root, topmost(mounts, mountUnified))
		h.addV1(root, mounts, own)
	case ModeV1:
		h.addV1(root, mounts, own)
	default:
		return nil, ErrNoCgroups
	}
	h.own = h.ownDir(own)
	return h, nil
}

// Mode returns the layout.
func (h *Host) Mode() Mode { return h.mode }

// modeOf decides in libcontainer's order (IsCgroup2UnifiedMode, IsCgroup2HybridMode).
// libcontainer asks statfs(2) of the two mount points; the table of mounts gives the same
// answer and can be a test's.
func modeOf(mounts []*mountinfo.Info) Mode {
	if top := topmost(mounts, mountRoot); top != nil && top.FSType == "cgroup2" {
		return ModeV2
	}
	if !slices.ContainsFunc(mounts, func(m *mountinfo.Info) bool { return m.FSType == "cgroup" }) {
		return ""
	}
	if top := topmost(mounts, mountUnified); top != nil && top.FSType == "cgroup2" {
		return ModeHybrid
	}
	return ModeV1
}

// topmost returns the mount visible at point: the last of several there.
func topmost(mounts []*mountinfo.Info, point string) *mountinfo.Info {
	var top *mountinfo.Info
	for _, m := range mounts {
		if m.Mountpoint == point {
			top = m
		}
	}
	return top
}

// unifiedTree puts agents below the mount point itself, as libcontainer does
// both on v2 (absolute path) and on hybrid hosts: clove's own v2 cgroup holds
// processes, and a cgroup with processes cannot give controllers to children.
func unifiedTree(root string, m *mountinfo.Info) tree {
	mount := filepath.Join(root, m.Mountpoint)
	return tree{mount: mount, base: mount, readOnly: isReadOnly(m)}
}

// addV1 finds the hierarchy of each controller from the mount options. The options list the
// controllers beside flags such as rw and xattr; own, whose keys come from
// /proc/self/cgroup, distinguishes them.
func (h *Host) addV1(root string, mounts []*mountinfo.Info, own map[string]string) {
	for _, m := range mounts {
		if m.FSType != "cgroup" {
			continue
		}
		for option := range strings.SplitSeq(m.VFSOptions, ",") {
			path, isController := own[option]
			// The first mount of a hierarchy counts, as in libcontainer; container
			// runtimes bind further copies elsewhere.
			if _, seen := h.trees[option]; seen || !isController || !joined(option) {
				continue
			}
			t := tree{mount: filepath.Join(root, m.Mountpoint), readOnly: isReadOnly(m)}
			t.base, t.foreign = below(t.mount, m.Root, path)
			h.trees[option] = t
		}
	}
}

// joined reports whether libcontainer moves an agent into this hierarchy: all controllers,
// and of the named hierarchies only systemd's.
func joined(option string) bool {
	return option == "name=systemd" || !strings.HasPrefix(option, "name=")
}

// below returns the directory of the cgroup own in a mount whose root is shown. In a cgroup
// namespace either may begin with "/..", the part of the tree above the namespace's root.
// Its names are unknown, and so is the directory.
func below(mount, shown, own string) (dir string, foreign bool) {
	if strings.HasPrefix(shown, "/..") || strings.HasPrefix(own, "/..") {
		return "", true
	}
	relative, err := filepath.Rel(shown, own)
	if err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return "", true
	}
	return filepath.Join(mount, relative), false
}

// isReadOnly looks at both kinds of options: one mount can be read-only (a container's
// view), or the file system itself, for all its mounts.
func isReadOnly(m *mountinfo.Info) bool {
	return slices.Contains(strings.Split(m.Options, ","), "ro") ||
		slices.Contains(strings.Split(m.VFSOptions, ","), "ro")
}

func readMounts(path string) ([]*mountinfo.Info, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the mounts: %w", err)
	}
	defer file.Close()
	mounts, err := mountinfo.GetMountsFromReader(file, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", path, err)
	}
	return mounts, nil
}

// readOwn returns clove's own cgroup by controller, from lines of the form
// "4:cpu,cpuacct:/path"; see cgroups(7). A kernel without cgroups has no such file. The
// line of the v2 tree, "0::/path", names no controller, which gives it the key unified.
func readOwn(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("cannot read clove's own cgroup: %w", err)
	}
	own := map[string]string{}
	for line := range bytes.Lines(text) {
		// Three parts at most, because the path may contain colons.
		fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		if len(fields) != 3 {
			return nil, fmt.Errorf("cannot parse %s: line %q has not three fields", path, line)
		}
		for name := range strings.SplitSeq(fields[1], ",") {
			own[name] = fields[2]
		}
	}
	return own, nil
}

// readDisabled finds controllers with 0 in the last column of /proc/cgroups. It only
// improves a message, so an absent file is no error.
func readDisabled(path string) map[string]bool {
	disabled := map[string]bool{}
	file, err := os.Open(path)
	if err != nil {
		return disabled
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 4 && fields[3] == "0" {
			disabled[fields[0]] = true
		}
	}
	return disabled
}
