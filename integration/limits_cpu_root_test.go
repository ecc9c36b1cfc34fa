//go:build root

package integration

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// spinWall keeps one CPU busy for argv[1] seconds of the wall clock and prints
// its own share of that time.
const spinWall = `
import sys, time
began, used = time.monotonic(), time.process_time()
while time.monotonic() - began < float(sys.argv[1]):
    pass
print((time.process_time() - used) / (time.monotonic() - began))
`

// share runs spinWall and compares it with the record.
func (h *host) share(seconds string, flags ...string) (share float64, r result) {
	h.t.Helper()
	r = h.agent(flags, python, "-c", spinWall, seconds)
	if _, err := fmt.Sscan(r.stdout, &share); err != nil || r.code != 0 {
		h.t.Fatalf("%q: %v: %+v\n%s", r.stdout, err, r.record, r.stderr)
	}
	return share, r
}

// tries is how often a busy machine may give an agent less than its limit
// allows. More than the limit is never an accident.
const tries = 5

// TestCPUShare: half a CPU is half a CPU, by the agent's own clock and by the
// record's figures. The control has no limit.
func TestCPUShare(t *testing.T) {
	h := newHost(t)
	var free float64
	var r result
	for range tries {
		if free, r = h.share("1"); free > 0.9 {
			break
		}
	}
	if free < 0.9 {
		t.Fatalf("control: without a limit the agent had %.2f of a CPU: this machine is too busy to tell", free)
	}
	if periods := r.record.Events.CPUThrottledPeriods; periods == nil || *periods != 0 {
		t.Errorf("control: %s periods were throttled", show(periods))
	}
	var half float64
	for range tries {
		if half, r = h.share("3", "--cpus", "0.5"); half > 0.45 {
			break
		}
	}
	if half < 0.45 || half > 0.55 {
		t.Errorf("--cpus 0.5 gave %.3f of a CPU", half)
	}
	u := r.record.Usage
	if u.CPUMS == nil || u.CPUThrottledMS == nil || r.record.Events.CPUThrottledPeriods == nil {
		t.Fatalf("figures are missing: %+v", r.record)
	}
	// The start of the sandbox is in cpu_ms, but not in wall_ms.
	if recorded := float64(*u.CPUMS) / float64(r.record.WallMS); recorded < 0.45 || testhost.Lane() == testhost.LaneRoot && recorded > 0.56 {
		t.Errorf("the record has %d ms of CPU in %d ms", *u.CPUMS, r.record.WallMS)
	}
	if *u.CPUThrottledMS < 500 || *r.record.Events.CPUThrottledPeriods < 10 {
		t.Errorf("throttled for %d ms in %d periods", *u.CPUThrottledMS, *r.record.Events.CPUThrottledPeriods)
	}
}

// TestCPUSet: the agent is on the CPUs that it was given and cannot leave them.
func TestCPUSet(t *testing.T) {
	h := newHost(t)
	if runtime.NumCPU() < 2 {
		testhost.Missing(t, "it needs two CPUs to tell one from the other")
	}
	const script = `
import errno, os
print(*sorted(os.sched_getaffinity(0)))
try:
    os.sched_setaffinity(0, {0})
    print("moved")
except OSError as e:
    print(errno.errorcode[e.errno])
`
	h.agent([]string{"--cpuset-cpus", "1"}, python, "-c", script).want(t, agent.StatusExited, 0, "1\nEINVAL\n")
	h.agent([]string{"--cpuset-cpus", "0-1"}, python, "-c", script).want(t, agent.StatusExited, 0, "0 1\nmoved\n")
}

// spinTree keeps argv[1] processes busy until each has used argv[2] seconds.
const spinTree = `
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        while time.process_time() < float(sys.argv[2]):
            pass
        os._exit(0)
for _ in range(int(sys.argv[1])):
    os.wait()
print("all")
`

// TestCPUTimeOfTheTree: no process of the agent reaches the limit, all of them
// together do. The controls are a larger limit, and the kernel's own per
// process, which never strikes.
func TestCPUTimeOfTheTree(t *testing.T) {
	h := newHost(t)
	tree := []string{python, "-c", spinTree, "4", "0.9"}
	h.agent([]string{"--cpu-time", "60"}, tree...).want(t, agent.StatusExited, 0, "all\n")
	h.agent([]string{"--ulimit", "cpu=2"}, tree...).want(t, agent.StatusExited, 0, "all\n")
	r := h.agent([]string{"--cpu-time", "2s"}, tree...)
	r.want(t, agent.StatusCPUTime, agent.ExitTimeout, "")
	hit := r.record.Limit
	if hit == nil || hit.Name != agent.ControlCPUTime || hit.Value != 2000 || hit.Peak == nil || *hit.Peak < 2000 || *hit.Peak > 3500 {
		t.Errorf("the record says %+v, peak %s", hit, show(hit.Peak))
	}
}

// TestCPUTimeOfTheDead: time that ended processes used counts, too.
func TestCPUTimeOfTheDead(t *testing.T) {
	h := newHost(t)
	const script = `i=0; while [ $i -lt 40 ]; do ` + python + ` -c 'import time
while time.process_time() < 0.1: pass'; i=$((i+1)); done; echo all`
	r := h.sh(script, "--cpu-time", "1")
	if r.want(t, agent.StatusCPUTime, agent.ExitTimeout, ""); *r.record.Usage.CPUMS < 1000 {
		t.Errorf("only %d ms were used", *r.record.Usage.CPUMS)
	}
	h.sh(script, "--cpu-time", "3m").want(t, agent.StatusExited, 0, "all\n")
}

// TestTheProgramIsToldItsLimits: environment for programs that look there, the
// kernel's own files for those that look there; true, and not the agent's to change.
func TestTheProgramIsToldItsLimits(t *testing.T) {
	h := newHost(t)
	read, value := "cd /sys/fs/cgroup/memory && cat memory.limit_in_bytes ../pids/pids.max ../cpu/cpu.cfs_quota_us", "134217728\n77\n50000\n"
	write := "/sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/memory/tasks /sys/fs/cgroup/memory/new/x /sys/fs/cgroup/new"
	if testhost.Cgroup() == testhost.CgroupV2 {
		read, value = "cd /sys/fs/cgroup && cat memory.max pids.max cpu.max", "134217728\n77\n50000 100000\n"
		write = "/sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/cgroup.subtree_control /sys/fs/cgroup/new"
	}
	flags := []string{"--memory", "128M", "--pids-limit", "77", "--cpus", "0.5"}
	script := `echo $CLOVE_MEMORY_BYTES $CLOVE_CPUS; ` + read
	h.sh(script, flags...).want(t, agent.StatusExited, 0, "134217728 0.5\n"+value)

	// Control: without the flags the values are others.
	if r := h.sh(script); r.code != 0 || r.stdout == "134217728 0.5\n"+value {
		t.Errorf("control: %q", r.stdout)
	}
	for _, user := range []string{"agent", "root"} {
		r := h.sh(`for file in `+write+`; do mkdir $(dirname $file) 2>/dev/null && echo made; (echo 1 >$file) 2>/dev/null && echo $file; done; mount -o remount,rw /sys/fs/cgroup 2>/dev/null && echo remounted; true`,
			append([]string{"--user", user}, flags...)...)
		r.want(t, agent.StatusExited, 0, "")
	}
	r := h.sh("echo $CLOVE_CPUS", "--cpuset-cpus", "0")
	r.want(t, agent.StatusExited, 0, "1\n")
	r = h.sh("echo $CLOVE_CPUS")
	r.want(t, agent.StatusExited, 0, strconv.Itoa(runtime.NumCPU())+"\n")
}
