package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"clove.run/clove/internal/initproto"
	"golang.org/x/sys/unix"
)

// cgroupDir is where the launch mounts the sandbox's own cgroup.
const cgroupDir = "/sys/fs/cgroup"

// spent returns what the cgroup below root has counted so far: on v1 where those
// hierarchies exist, otherwise on v2.
func spent(root string) initproto.Spent {
	// The kernel accounts what this thread has used since the last tick only when its
	// time is read (task_sched_runtime in kernel/sched/core.c).
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &unix.Timespec{})
	if total := figure(root, "cpuacct/cpuacct.usage", ""); total > 0 {
		return initproto.Spent{CPUNS: total, CPUUserNS: figure(root, "cpuacct/cpuacct.usage_user", ""),
			CPUSystemNS: figure(root, "cpuacct/cpuacct.usage_sys", ""), MemoryPeakBytes: figure(root, "memory/memory.max_usage_in_bytes", "")}
	}
	const microsecond = 1000
	return initproto.Spent{CPUNS: figure(root, "cpu.stat", "usage_usec") * microsecond, CPUUserNS: figure(root, "cpu.stat", "user_usec") * microsecond,
		CPUSystemNS: figure(root, "cpu.stat", "system_usec") * microsecond, MemoryPeakBytes: figure(root, "memory.peak", "")}
}

// figure returns the number after key in a file of lines, or with an empty key the first
// line's; 0 if there is none.
func figure(root, file, key string) int64 {
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, key); found {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return n
		}
	}
	return 0
}
