//go:build root

package integration

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// memoryBomb allocates argv[2] MiB of the kind argv[1], all at the same time.
const memoryBomb = `
import mmap, os, sys
kind, size = sys.argv[1], int(sys.argv[2]) << 20
def fill(fd):
    for _ in range(size >> 20):
        os.write(fd, b"x" * (1 << 20))
if kind == "malloc":
    held = b"x" * size
elif kind == "mapping":
    held = mmap.mmap(-1, size)
    for at in range(0, size, 4096):
        held[at] = 1
elif kind == "fork":
    children = 20
    ready, ready_in_child = os.pipe()
    end_in_child, end = os.pipe()
    for _ in range(children):
        if os.fork() == 0:
            os.close(end)
            held = b"x" * (size // children)
            os.write(ready_in_child, b"r")
            os.read(end_in_child, 1)
            os._exit(0)
    for _ in range(children):
        os.read(ready, 1)
elif kind == "memfd":
    fill(os.memfd_create("bomb"))
else:
    fill(os.open(kind + "/bomb", os.O_WRONLY | os.O_CREAT))
`

const (
	bombMiB  = 160
	lowMiB   = 64
	roomyMiB = 320
)

// TestMemoryBombsEndTheWholeAgent: with any kind of page, and although the bomb is a
// background child of a shell that only waits for another child, no process of the agent
// stays. The control is the same bomb with a higher limit.
func TestMemoryBombsEndTheWholeAgent(t *testing.T) {
	h := newHost(t)
	for _, c := range testhost.Few([]struct {
		kind  string
		flags []string
	}{
		{"fork", nil},
		{"/dev/shm", []string{"--shm-size", "300M"}},
		{"malloc", nil},
		{"mapping", nil},
		{"memfd", nil},
		{"/scratch", []string{"--tmpfs", "/scratch:size=300M"}},
	}, 2) {
		t.Run(strings.TrimPrefix(c.kind, "/"), func(t *testing.T) {
			control := h.agent(append([]string{"--memory", mib(roomyMiB)}, c.flags...),
				python, "-c", memoryBomb, c.kind, strconv.Itoa(bombMiB))
			if control.want(t, agent.StatusExited, 0, ""); t.Failed() {
				t.Fatal("control: the bomb does no harm where there is room for it")
			}
			if peak := control.record.Usage.MemoryPeakBytes; peak == nil || *peak < bombMiB<<20 {
				t.Fatalf("control: the bomb took only %v bytes", show(peak))
			}
			r := h.agent(append([]string{"--memory", mib(lowMiB)}, c.flags...), "sh", "-c",
				`sleep 1000 & sibling=$!; `+python+` -c "$@" & wait $sibling`, "sh", memoryBomb, c.kind, strconv.Itoa(bombMiB))
			r.wantOOM(t, lowMiB<<20)
		})
	}
}

// wantOOM checks everything that is reported of an agent that ran out of memory.
func (r result) wantOOM(t *testing.T, limit int64) {
	t.Helper()
	if r.want(t, agent.StatusOOM, agent.ExitKilled, r.stdout); t.Failed() {
		return
	}
	hit := r.record.Limit
	if hit == nil || hit.Name != agent.ControlMemory || hit.Value != limit || hit.Peak == nil || *hit.Peak > limit || *hit.Peak < limit*9/10 {
		t.Errorf("the record says %+v (peak %s), want memory, %d and a peak close below it", hit, show(hit.Peak), limit)
	}
	if kills := r.record.Events.OOMKill; kills == nil || *kills < 1 {
		t.Errorf("the kernel is said to have killed %s processes", show(kills))
	}
	if !strings.Contains(r.stderr, "clove: memory limit of ") || !strings.Contains(r.stderr, "--memory") {
		t.Errorf("stderr does not say what happened and what to change:\n%s", r.stderr)
	}
}

// TestTheLeastMemory: less than the minimum is refused with the minimum named, a start with
// the minimum always succeeds, and an agent that needs more than it has ends as oom, never as
// a start that failed without a reason.
func TestTheLeastMemory(t *testing.T) {
	h := newHost(t)
	r := h.clove("run", "--memory", "15M", "--", "true")
	if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, "at least 16MiB") {
		t.Errorf("15M: exit %d, want 125 and the floor\n%s", r.code, r.stderr)
	}
	for range rounds(10, 4) {
		if r := h.agent([]string{"--memory", "16M"}, "/bin/true"); r.code != 0 {
			t.Fatalf("the floor is too low: %+v\n%s", r.record, r.stderr)
		}
	}
	ended := map[agent.Status]int{}
	for megabytes := 16; megabytes <= 64; megabytes += 8 {
		r := h.agent([]string{"--memory", mib(megabytes)}, python, "-c", "held = b'x' * (30 << 20)")
		ended[r.record.Status]++
		if r.record.Status == agent.StatusOOM {
			r.wantOOM(t, int64(megabytes)<<20)
		} else if r.code != 0 {
			t.Errorf("%d MiB: %+v\n%s", megabytes, r.record, r.stderr)
		}
	}
	if ended[agent.StatusOOM] == 0 || ended[agent.StatusExited] == 0 {
		t.Errorf("the sizes tried do not include too little and enough: %v", ended)
	}
}

// TestSwapIsOffUnlessAskedFor reads the kernel's own limit inside. Its enforcement needs a
// host with swap: see TestSwapIsNotUsed.
func TestSwapIsOffUnlessAskedFor(t *testing.T) {
	h := newHost(t)
	// v1 counts memory and swap together, as docker's flag does; v2 counts swap alone.
	file, off, some, all := "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", 64<<20, 96<<20, "9223372036854771712"
	if testhost.Cgroup() == testhost.CgroupV2 {
		file, off, some, all = "/sys/fs/cgroup/memory.swap.max", 0, 32<<20, "max"
	}
	for _, c := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--memory", "64M"}, strconv.Itoa(off)},
		{[]string{"--memory", "64M", "--memory-swap", "64M"}, strconv.Itoa(off)},
		{[]string{"--memory", "64M", "--memory-swap", "96M"}, strconv.Itoa(some)},
		{[]string{"--memory", "64M", "--memory-swap", "-1"}, all},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			h.agent(c.flags, "cat", file).want(t, agent.StatusExited, 0, c.want+"\n")
		})
	}
	r := h.clove("run", "--memory", "64M", "--memory-swap", "32M", "--", "true")
	if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, "at least 64MiB") {
		t.Errorf("less than the memory: exit %d\n%s", r.code, r.stderr)
	}
}

// TestSwapIsNotUsed gives the virtual machine a swap file; this test must not change the host
// of the root lane.
func TestSwapIsNotUsed(t *testing.T) {
	h := newHost(t)
	if testhost.Lane() != testhost.LaneVM {
		t.Log("this host gets no swap file: only the kernel's settings are tested here (TestSwapIsOffUnlessAskedFor)")
		return
	}
	swapOn(t, 256)
	bomb := []string{python, "-c", memoryBomb, "malloc", "120"}
	h.agent([]string{"--memory", "64M"}, bomb...).wantOOM(t, 64<<20)
	// Control: the same amount fits if swap is allowed.
	h.agent([]string{"--memory", "64M", "--memory-swap", "256M"}, bomb...).want(t, agent.StatusExited, 0, "")
}

func swapOn(t *testing.T, megabytes int) {
	t.Helper()
	file := t.TempDir() + "/swap"
	onHost(t, "sh", "-c", fmt.Sprintf("umask 077; head -c %dM /dev/zero >%s && mkswap -q %s && swapon %s", megabytes, file, file, file))
	t.Cleanup(func() { onHost(t, "swapoff", file) })
}
