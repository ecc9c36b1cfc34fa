//go:build root

package runc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// history is everything that was printed and observed in one container's life, as lines of a
// place and a text.
type history struct {
	site  *site
	input *os.File // of the commands; nil means the null device
	lines []string
}

func (h *history) note(place, format string, args ...any) {
	for line := range strings.SplitSeq(strings.TrimRight(fmt.Sprintf(format, args...), "\n"), "\n") {
		h.lines = append(h.lines, place+": "+line)
	}
}

// told records the result of one command line.
func (h *history) told(command string, s said) {
	h.note(command, "status %d", s.status)
	for _, part := range []struct{ name, text string }{{"output", s.out}, {"stderr", s.err}, {"log", s.logged}, {"log is not JSON", s.logProblems}} {
		if part.text != "" {
			h.note(command+" "+part.name, "%s", part.text)
		}
	}
}

// live goes through the container's life, as far as it comes. flags are create's.
func (s *site) live(flags ...string) []string {
	s.t.Helper()
	h := &history{site: s}
	in, input := s.pipe()
	output, out := s.pipe()
	args := append([]string{"create", "--pid-file", s.path("pid")}, append(flags, s.id)...)
	errs := s.create("process-stderr") // the process has it, too
	created := s.callWith(streams{in, out, errs}, args...)
	in.Close()
	out.Close()
	errs.Close()
	h.told("create", created)
	h.told("state after create", s.call("state", s.id))
	if created.status == 0 {
		h.started(bufio.NewScanner(output), input)
	}
	input.Close()
	output.Close()
	h.told("delete", s.call("delete", s.id))
	h.told("state after delete", s.call("state", s.id))
	s.call("delete", "--force", s.id) // in case the delete above failed
	h.note("process", "stderr %s", s.read("process-stderr"))
	h.left()
	return h.normal()
}

func (s *site) pipe() (reading, writing *os.File) {
	s.t.Helper()
	reading, writing, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	return reading, writing
}

// started is the life from start to the process's end.
func (h *history) started(output *bufio.Scanner, input *os.File) {
	s := h.site
	s.t.Helper()
	pid, err := strconv.Atoi(s.read("pid"))
	if err != nil {
		s.t.Fatalf("create wrote no process id: %v", err)
	}
	end, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		// Some bundles have limits in which the process cannot live until its start: what it
		// comes to before depends on the load.
		h.told("start", s.call("start", s.id))
		return
	}
	if err != nil {
		s.t.Fatalf("cannot watch process %d: %v", pid, err)
	}
	defer unix.Close(end)
	h.told("start", s.call("start", s.id))
	complete := false
	for !complete && output.Scan() {
		complete = output.Text() == "end\t"
		h.note("world", "%s", output.Text())
	}
	// A process that did not come this far is ending; its state is recorded after its end.
	if !complete && !readable(end, patience()) {
		s.t.Fatalf("process %d said not all, and lives", pid)
	}
	h.told("state after start", s.call("state", s.id))
	h.told("start again", s.call("start", s.id))
	h.told("delete while running", s.call("delete", s.id))
	if complete { // what can be read of an ended process depends on whether it was reaped
		h.limits(pid)
	}
	input.Close()
	if !readable(end, patience()) {
		s.t.Fatalf("process %d does not end", pid)
	}
	h.told("state after the end", s.call("state", s.id))
	h.told("kill after the end", s.call("kill", s.id, "TERM"))
}

// readable waits for a pidfd, which can be read when its process has ended.
func readable(fd int, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(time.Until(deadline), 0).Milliseconds()))
		if n > 0 || err != unix.EINTR {
			return n > 0
		}
	}
}

// limitFiles are the files of a cgroup that a runtime writes, in both versions.
var limitFiles = strings.Fields(`memory.limit_in_bytes memory.memsw.limit_in_bytes memory.soft_limit_in_bytes memory.swappiness
	memory.oom_control memory.max memory.high memory.low memory.min memory.swap.max pids.max cpu.shares cpu.cfs_quota_us
	cpu.cfs_period_us cpu.cfs_burst_us cpu.idle cpu.max cpu.max.burst cpu.weight cpuset.cpus cpuset.mems devices.list blkio.weight
	blkio.bfq.weight blkio.throttle.read_bps_device blkio.throttle.write_iops_device io.max io.weight io.bfq.weight freezer.state
	cgroup.freeze net_cls.classid hugetlb.2MB.limit_in_bytes hugetlb.2MB.max`)

// limits records the limits of the container's cgroups.
func (h *history) limits(pid int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		h.note("cgroup", "%v", err)
		return
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		h.note("cgroup", "%s %s", fields[1], fields[2])
		for _, root := range []string{"", "unified", strings.TrimPrefix(fields[1], "name=")} {
			for _, name := range limitFiles {
				file := filepath.Join("/sys/fs/cgroup", root, fields[2], name)
				if value, err := os.ReadFile(file); err == nil && (fields[1] == "") == (root == "" || root == "unified") {
					h.note("cgroup "+name, "%s", value)
				}
			}
		}
	}
}

// left records what is on the host after the container's end: the mount points in its root,
// what hooks wrote, and cgroups.
func (h *history) left() {
	_ = filepath.WalkDir(h.site.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			h.note("left", "%v", err)
			return nil
		}
		name, _ := filepath.Rel(h.site.dir, path)
		info, err := entry.Info()
		if err != nil || slices.Contains([]string{"log", "stdout", "stderr", "process-stderr", "process-stdout", "config.json", "pid"}, name) {
			return nil
		}
		h.note("left", "%s %s", info.Mode(), name)
		if text, found := strings.CutPrefix(name, "hook-"); found {
			h.note(text, "%s", h.site.read(name))
		}
		return nil
	})
	for _, group := range cgroups(h.site.id) {
		h.note("left", "cgroup %s", group)
	}
}

// cgroupParent is the parent of those containers' cgroups that have one.
const cgroupParent = "beside-each-other"

// cgroups finds those with this name in every hierarchy.
func cgroups(name string) (all []string) {
	for _, root := range []string{"", "*/", "*/*/", "*/*/*/", "*/*/*/*/"} {
		found, _ := filepath.Glob("/sys/fs/cgroup/" + root + name)
		all = append(all, found...)
	}
	return all
}

// removeParents removes the parent cgroups that libcontainer makes and leaves.
func removeParents() {
	for _, parent := range cgroups(cgroupParent) {
		_ = os.Remove(filepath.Join(parent, "deep")) // it may not exist
		_ = os.Remove(parent)
	}
}

// stateLine returns a state's JSON on one line, with words for the numbers that always differ
// between two runs, and what is wrong with them.
func stateLine(text string) string {
	var state map[string]any
	if json.Unmarshal([]byte(text), &state) != nil {
		return text
	}
	if pid, isNumber := state["pid"].(float64); isNumber && pid > 0 {
		state["pid"] = "PID"
	}
	if made, isText := state["created"].(string); isText {
		if at, err := time.Parse(time.RFC3339Nano, made); err == nil && time.Since(at) < time.Hour && at.Location() == time.UTC {
			state["created"] = "TIME"
		}
	}
	line, _ := json.Marshal(state) // it was JSON
	return string(line)
}
