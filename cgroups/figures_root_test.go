//go:build root

package cgroups

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
)

const mebi = 1 << 20

// eat holds 64 MiB in one process and then reports it.
const eat = `head -c 64M /dev/zero | tail -c 64M >/dev/null; echo ate`

func TestOOMIsCountedAndSeenWheneverTheWatchBegan(t *testing.T) {
	g := realGroup(t)
	control := join(t, g, eat)
	before, err := g.WatchOOM(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	control.begin(t)
	control.expectLine(t, "ate")
	if n, err := g.OOMKills(); err != nil || n != 0 {
		t.Fatalf("control: without a limit %d were killed, %v", n, err)
	}
	select {
	case <-before:
		t.Fatal("control: a kill was reported without a limit")
	default:
	}

	limitMemory(t, g, 32*mebi)
	victim := join(t, g, eat)
	victim.begin(t)
	within := time.After(testhost.Patience(20 * time.Second))
	select {
	case <-before:
	case <-within:
		t.Fatal("the kill was not reported")
	}
	n, err := g.OOMKills()
	if err != nil || n < 1 {
		t.Errorf("reported, but counted %d, %v", n, err)
	}
	wantNoInotify(t)
	after, err := g.WatchOOM(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-after:
	case <-within:
		t.Fatal("a watch that began after the kill never reported it")
	}
}

// wantNoInotify checks that no inotify instance is used: root has 128 of them for all programs
// of a host (fs.inotify.max_user_instances), so a watch for each agent must not take one.
func wantNoInotify(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + entry.Name()); strings.Contains(to, "inotify") {
			t.Errorf("a watch holds an inotify instance, descriptor %s", entry.Name())
		}
	}
}

func TestMemoryPeakIsThatOfTheTree(t *testing.T) {
	g := realGroup(t)
	limitMemory(t, g, 200*mebi)
	m := join(t, g, eat)
	m.begin(t)
	m.expectLine(t, "ate")
	s, err := g.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if s.MemoryPeakBytes == nil || *s.MemoryPeakBytes < 64*mebi || *s.MemoryPeakBytes > 200*mebi {
		t.Errorf("64 MiB were held under a limit of 200 MiB: %s", figures(s))
	}
	if s.OOMKills == nil || *s.OOMKills != 0 {
		t.Errorf("no process was killed: %s", figures(s))
	}
}

func TestCPUTimeIsTrue(t *testing.T) {
	const spin = 200 * time.Millisecond
	g := realGroup(t)
	before, err := g.CPUTime() // used by no member yet: a process that joins uses some for its own start
	if err != nil || before > spin/2 {
		t.Fatalf("control: %s were used before anything ran, %v", before, err)
	}
	m := joinRole(t, g, spin.String())
	m.begin(t)
	if err := m.Wait(); err != nil {
		t.Fatal(err)
	}
	used, err := g.CPUTime()
	if err != nil {
		t.Fatal(err)
	}
	s, err := g.Stats()
	if err != nil || s.CPU == nil || s.CPUUser == nil || s.CPUSystem == nil {
		t.Fatalf("got %s, %v", figures(s), err)
	}
	// getrusage(2) covers the whole life of the process, the group only what it did inside.
	own := m.ProcessState.UserTime() + m.ProcessState.SystemTime()
	if *s.CPU < spin || *s.CPU > own+own/4 {
		t.Errorf("%s of CPU time were used by a process that used %s", *s.CPU, own)
	}
	if *s.CPUUser+*s.CPUSystem < *s.CPU-time.Millisecond || *s.CPUUser+*s.CPUSystem > *s.CPU+time.Millisecond {
		t.Errorf("user and system do not add up: %s", figures(s))
	}
	if used < spin || used > *s.CPU {
		t.Errorf("CPUTime() = %s, Stats() has %s", used, *s.CPU)
	}
}

func TestThrottlingIsCounted(t *testing.T) {
	g := realGroup(t)
	if s, err := g.Stats(); err != nil || s.CPUThrottledPeriods == nil || *s.CPUThrottledPeriods != 0 {
		t.Fatalf("control: throttled before anything ran: %s, %v", figures(s), err)
	}
	// A tenth of one CPU, in periods of 10 ms.
	if g.onV1() {
		g.limit(t, "cpu", "cpu.cfs_period_us", "", "10000")
	}
	g.limit(t, "cpu", "cpu.cfs_quota_us", "cpu.max", map[bool]string{true: "1000", false: "1000 10000"}[g.onV1()])
	m := joinRole(t, g, "50ms")
	m.begin(t)
	if err := m.Wait(); err != nil {
		t.Fatal(err)
	}
	s, err := g.Stats()
	if err != nil || s.CPUThrottledPeriods == nil || *s.CPUThrottledPeriods == 0 || s.CPUThrottled == nil || *s.CPUThrottled == 0 {
		t.Errorf("50 ms at a tenth of a CPU were not throttled: %s, %v", figures(s), err)
	}
}

func TestFreezeStopsAndThawGoesOn(t *testing.T) {
	g := realGroup(t)
	m := join(t, g, `while read line; do echo "$line"; done`)
	m.begin(t)
	say := func(line string) {
		t.Helper()
		if _, err := m.stdin.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	say("control")
	m.expectLine(t, "control")
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	say("frozen")
	m.out.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := m.out.Read(make([]byte, 16)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a frozen process said %d bytes (%v)", n, err)
	}
	for range 2 { // thawing what is not frozen is no error
		if err := g.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
	m.expectLine(t, "frozen")
}
