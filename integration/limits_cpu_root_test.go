//go:build root

package integration

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// spinWall waits for a line, keeps one CPU busy for argv[1] seconds of the wall
// clock, and prints its own share of that time.
const spinWall = `
import os, sys, time
print(os.environ["CLOVE_ID"], flush=True)
sys.stdin.readline()
began, used = time.monotonic(), time.process_time()
while time.monotonic() - began < float(sys.argv[1]):
    pass
print((time.process_time() - used) / (time.monotonic() - began), flush=True)
`

// share runs spinWall with priority over everything else on this machine.
func (h *host) share(seconds string, flags ...string) (share float64, ended result) {
	h.t.Helper()
	r := h.start(flags, python, "-c", spinWall, seconds)
	prefer(h.t, r.line())
	if _, err := io.WriteString(r.stdin, "go\n"); err != nil {
		h.t.Error(err)
	}
	line := r.line()
	ended = r.wait()
	if _, err := fmt.Sscan(line, &share); err != nil || ended.code != 0 {
		h.t.Fatalf("%q: %v: %+v\n%s", line, err, ended.record, ended.stderr)
	}
	return share, ended
}

// prefer gives an agent's cgroup the largest weight, and clove's too until the end of the
// test, so that other load does not look like a limit.
func prefer(t *testing.T, id string) {
	t.Helper()
	var weights []string
	for _, pattern := range []string{"cpu/*%s*/cpu.shares", "cpu/*/*%s*/cpu.shares", "cpu/*/*/*%s*/cpu.shares", "clove.slice/*/agents/*%s*/cpu.weight"} {
		found, err := filepath.Glob("/sys/fs/cgroup/" + fmt.Sprintf(pattern, id))
		if err != nil {
			t.Fatal(err)
		}
		weights = append(weights, found...)
	}
	if len(weights) != 1 {
		t.Fatalf("the cpu cgroups of agent %s are %v", id, weights)
	}
	of := map[string]string{"cpu.shares": "262144", "cpu.weight": "10000"} // the largest value that the kernel accepts
	parent := filepath.Join(filepath.Dir(filepath.Dir(weights[0])), filepath.Base(weights[0]))
	before, err := os.ReadFile(parent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(parent, before, 0); err != nil {
			t.Error(err)
		}
	})
	for _, file := range []string{parent, weights[0]} {
		if err := os.WriteFile(file, []byte(of[filepath.Base(file)]), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// tries is how often a busy machine may give an agent less than its limit allows. More than
// the limit is never an accident.
const tries = 3

// TestCPUShare: half a CPU, by the agent's own clock and by the record's figures. The control
// has no limit.
func TestCPUShare(t *testing.T) {
	h := newHost(t)
	var free, half, recorded float64
	var r result
	for n := 0; n < tries && free < 0.9; n++ {
		free, r = h.share("2")
	}
	if periods := r.record.Events.CPUThrottledPeriods; free < 0.9 || periods == nil || *periods != 0 {
		t.Fatalf("control: without a limit the agent had %.2f of a CPU, throttled in %s periods", free, show(periods))
	}
	for n := 0; n < tries && half <= 0.55 && (half < 0.45 || recorded < 0.4); n++ {
		half, r = h.share("3", "--cpus", "0.5")
		if r.record.Usage.CPUMS != nil {
			recorded = float64(*r.record.Usage.CPUMS) / float64(r.record.WallMS)
		}
	}
	if half < 0.45 || half > 0.55 {
		t.Errorf("--cpus 0.5 gave %.3f of a CPU", half)
	}
	u := r.record.Usage
	if u.CPUMS == nil || u.CPUThrottledMS == nil || r.record.Events.CPUThrottledPeriods == nil {
		t.Fatalf("figures are missing: %+v", r.record)
	}
	// cpu_ms contains clove-init's part, and wall_ms does not contain its end.
	if recorded < 0.4 || testhost.Lane() == testhost.LaneRoot && recorded > 0.56 {
		t.Errorf("the record has %d ms of CPU in %d ms", *u.CPUMS, r.record.WallMS)
	}
	if *u.CPUThrottledMS < 500 || *r.record.Events.CPUThrottledPeriods < 10 {
		t.Errorf("throttled for %d ms in %d periods", *u.CPUThrottledMS, *r.record.Events.CPUThrottledPeriods)
	}
}

// TestCPUSet: the agent runs on the given CPUs and cannot leave them.
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

// TestCPUTimeOfTheTree: no process of the agent reaches the limit, but all of them together
// do. The controls are a larger limit, and the kernel's own limit for each process, which does
// not apply here.
func TestCPUTimeOfTheTree(t *testing.T) {
	h := newHost(t)
	tree := []string{python, "-c", spinTree, "4", "0.45"}
	h.agent([]string{"--cpu-time", "60"}, tree...).want(t, agent.StatusExited, 0, "all\n")
	h.agent([]string{"--ulimit", "cpu=1"}, tree...).want(t, agent.StatusExited, 0, "all\n")
	r := h.agent([]string{"--cpu-time", "1s"}, tree...)
	r.want(t, agent.StatusCPUTime, agent.ExitTimeout, "")
	hit := r.record.Limit
	if hit == nil || hit.Name != agent.ControlCPUTime || hit.Value != 1000 || hit.Peak == nil || *hit.Peak < 1000 || *hit.Peak > 3000 {
		t.Errorf("the record says %+v, peak %s", hit, show(hit.Peak))
	}
}

// TestCPUTimeOfTheDead: CPU time of processes that have ended counts, too.
func TestCPUTimeOfTheDead(t *testing.T) {
	h := newHost(t)
	const script = `i=0; while [ $i -lt 20 ]; do ` + python + ` -c 'import time
while time.process_time() < 0.1: pass'; i=$((i+1)); done; echo all`
	r := h.sh(script, "--cpu-time", "1")
	if r.want(t, agent.StatusCPUTime, agent.ExitTimeout, ""); *r.record.Usage.CPUMS < 1000 {
		t.Errorf("only %d ms were used", *r.record.Usage.CPUMS)
	}
	h.sh(script, "--cpu-time", "3m").want(t, agent.StatusExited, 0, "all\n")
}

// TestTheProgramIsToldItsLimits: in environment variables and in the kernel's files. Both are
// true, and the agent cannot change the files.
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

	// Control: without the flags the values differ.
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
