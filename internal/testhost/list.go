package testhost

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// agentCgroup matches the path of anything below clove's parent cgroup. The
// parent itself ("clove" on v1, below "clove.slice" on v2) belongs to the host
// and stays, as a systemd slice would.
var agentCgroup = regexp.MustCompile(`/clove(-oci-test|\.slice)?/.+`)

// parentCgroup matches what stays on v2 below the slice.
var parentCgroup = regexp.MustCompile(`/clove\.slice/clove-agents\.service(/supervisors|/agents)?$`)

// loopNumber matches a loop device as the source of a mount. After an unmount and a new
// mount the number may differ.
var loopNumber = regexp.MustCompile(`^/dev/loop\d+$`)

// libraryFiles are files that libraries open once and keep for the process's life. They are
// not leaks, although they appear during the first test that needs them.
var libraryFiles = map[string]bool{
	"/sys/fs/cgroup": true, // opencontainers/cgroups: the root of its openat2 calls
	"/proc":          true, // filepath-securejoin: its checked handle of procfs
}

// listMounts leaves out the numbers of loop devices, because a test may unmount and mount
// its own again.
func listMounts([]string) ([]string, error) {
	mounts, err := mounts()
	var lines []string
	for _, m := range mounts {
		lines = append(lines, fmt.Sprintf("%s (%s from %s)", m.point, m.kind, loopNumber.ReplaceAllString(m.source, "/dev/loop")))
	}
	return lines, err
}

// mount is what one line of proc_pid_mountinfo(5) says. Paths stay escaped as
// the kernel wrote them: they are only compared and shown.
type mount struct{ root, point, kind, source string }

// mounts lists the mounts of this process's namespace.
func mounts() ([]mount, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []mount
	for line := range strings.Lines(string(table)) {
		// "-" ends a number of optional fields.
		if place, file, ok := strings.Cut(line, " - "); ok {
			place, file := strings.Fields(place), strings.Fields(file)
			all = append(all, mount{root: place[3], point: place[4], kind: file[0], source: file[1]})
		}
	}
	return all, nil
}

// listCgroups leaves out the parents that stay on the host.
func listCgroups([]string) ([]string, error) {
	found, err := agentCgroups("/sys/fs/cgroup")
	return slices.DeleteFunc(found, parentCgroup.MatchString), err
}

// agentCgroups walks every hierarchy below root.
func agentCgroups(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if gone(err) {
			return nil
		}
		if err == nil && entry.IsDir() && agentCgroup.MatchString(strings.TrimPrefix(path, root)) {
			found = append(found, path)
		}
		return err
	})
	return found, err
}

// listCgroupProcesses lists the pids, each with its cgroup: endLeft reads them.
func listCgroupProcesses([]string) ([]string, error) {
	groups, err := agentCgroups("/sys/fs/cgroup")
	var lines []string
	for _, group := range groups {
		pids, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		if gone(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		for _, pid := range strings.Fields(string(pids)) {
			lines = append(lines, pid+" in "+group)
		}
	}
	return lines, err
}

// listLoops lists all loop devices of the machine. A worker of the root lane lists only
// those whose file was in the worker's temporary folder, because the others belong to other
// workers.
func listLoops([]string) ([]string, error) {
	worker := os.Getenv("CLOVE_WORKER")
	devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	var lines []string
	for _, device := range devices {
		backing, err := os.ReadFile(device)
		if gone(err) { // detached meanwhile
			continue
		} else if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(string(backing), worker) {
			continue
		}
		lines = append(lines, "on "+strings.TrimSpace(string(backing)))
	}
	return lines, err
}

// listNetworkNamespaces finds those that a process is in or that a mount keeps. One that
// only a descriptor keeps is listed among the test's open files.
func listNetworkNamespaces([]string) ([]string, error) {
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, link := range links {
		// Kernel threads and processes that just ended have none to read.
		if name, err := os.Readlink(link); err == nil {
			seen[name] = true
		}
	}
	mounts, err := mounts()
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		if m.kind == "nsfs" && strings.HasPrefix(m.root, "net:") {
			seen[m.root] = true
		}
	}
	var lines []string
	for name := range seen {
		lines = append(lines, name)
	}
	return lines, nil
}

// listFiles lists everything below the test's own directories.
func listFiles(dirs []string) ([]string, error) {
	var lines []string
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if gone(err) {
				return nil
			}
			lines = append(lines, path)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return lines, nil
}

// listOwnFiles lists what this process has open. Descriptors that an earlier test left are
// there before as well, so only new ones count.
func listOwnFiles([]string) ([]string, error) {
	entries, err := os.ReadDir("/proc/self/fd")
	var lines []string
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		// The descriptor that read this very listing is gone by now.
		if gone(err) || libraryFiles[target] {
			continue
		} else if err != nil {
			return nil, err
		}
		lines = append(lines, target)
	}
	return lines, err
}

// gone reports that an object ended between its listing and the access: its name is absent,
// or the kernel file behind it returns ENODEV or ENXIO.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.ENXIO)
}
