//go:build root

package integration

import (
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// TestUsageIsTrue has an agent use a known amount of each resource, and compares the record.
// The control is an agent that uses almost nothing.
func TestUsageIsTrue(t *testing.T) {
	h := newHost(t)
	const busy = `
import os, time
held = b"x" * (100 << 20)
ready, ready_in_child = os.pipe()
end_in_child, end = os.pipe()
for _ in range(30):
    if os.fork() == 0:
        os.close(end)
        os.write(ready_in_child, b"r")
        os.read(end_in_child, 1)
        os._exit(0)
for _ in range(30):
    os.read(ready, 1)
out = os.open("/tmp/out", os.O_WRONLY | os.O_CREAT)
os.write(out, os.urandom(20 << 20))
os.fsync(out)
while time.process_time() < 4:
    sum(range(10000))
os.write(1, b"x" * 1000)
os.write(2, b"x" * 234)
`
	u := h.agent([]string{"--memory", "512M"}, python, "-c", busy).record.Usage
	idle := h.agent([]string{"--memory", "512M"}, "/bin/true").record.Usage
	if u.CPUMS == nil || u.CPUUserMS == nil || u.CPUSystemMS == nil {
		t.Fatalf("no CPU figures: %+v", u)
	}
	if sum := *u.CPUUserMS + *u.CPUSystemMS; sum < *u.CPUMS-3 || sum > *u.CPUMS+3 {
		t.Errorf("%d ms of user and system time, %d ms in all", sum, *u.CPUMS)
	}
	if testhost.Lane() == testhost.LaneRoot && *u.CPUUserMS < *u.CPUSystemMS {
		t.Errorf("a program that computes spent %d ms computing and %d ms in the kernel", *u.CPUUserMS, *u.CPUSystemMS)
	}
	if u.StartCPUMS == nil || *u.StartCPUMS == 0 || u.StartMemoryPeakBytes == nil || *u.StartMemoryPeakBytes >= 120<<20 {
		t.Errorf("of the start: %s ms, %s bytes", show(u.StartCPUMS), show(u.StartMemoryPeakBytes))
	}
	for _, c := range []struct {
		name           string
		got, idle      *int64
		least, most    int64
		alwaysReported bool
	}{
		{"cpu_ms", u.CPUMS, idle.CPUMS, 4000, 40000, true},
		{"memory_peak_bytes", u.MemoryPeakBytes, idle.MemoryPeakBytes, 120 << 20, 190 << 20, true},
		{"pids_peak", u.PidsPeak, idle.PidsPeak, 32, 50, h.tells("pids", "pids.peak")},
		{"disk_bytes", u.DiskBytes, idle.DiskBytes, 20 << 20, 21 << 20, true},
		{"output_bytes", u.OutputBytes, idle.OutputBytes, 1234, 1234, true},
		// On a slow host, pages that are changed during their writeback are written to the
		// disk twice.
		{"io_write_bytes", u.IOWriteBytes, idle.IOWriteBytes, 20 << 20, 44 << 20, testhost.Cgroup() == testhost.CgroupV2},
	} {
		switch {
		case !c.alwaysReported:
			if c.got != nil {
				t.Errorf("%s is %d, where the kernel does not count it", c.name, *c.got)
			}
		case c.got == nil || c.idle == nil:
			t.Errorf("%s is absent", c.name)
		case *c.got < c.least || *c.got > c.most:
			t.Errorf("%s is %d, want %d to %d", c.name, *c.got, c.least, c.most)
		case *c.idle >= c.least:
			t.Errorf("control: %s of an idle agent is %d", c.name, *c.idle)
		}
	}
}

// tells reports whether the agent's cgroup has a file, which only newer kernels have.
func (h *host) tells(controller, file string) bool {
	h.t.Helper()
	r := h.sh("ls -d /sys/fs/cgroup/" + file + " /sys/fs/cgroup/" + controller + "/" + file + " 2>/dev/null | wc -l")
	r.want(h.t, agent.StatusExited, 0, r.stdout)
	return r.stdout == "1\n"
}
