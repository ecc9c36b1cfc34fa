package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func showLimits(l Limits) string {
	show := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	cpus := "-"
	if l.CPUs != nil {
		cpus = fmt.Sprint(*l.CPUs)
	}
	return fmt.Sprintf("memory %s swap %s pids %s cpus %s", show(l.MemoryBytes), show(l.SwapBytes), show(l.Pids), cpus)
}

func TestLimits(t *testing.T) {
	v1 := map[[2]string]string{
		{"memory", "memory.limit_in_bytes"}: "4096\n", {"memory", "memory.memsw.limit_in_bytes"}: "8192\n", {"pids", "pids.max"}: "7\n",
		{"cpu", "cpu.cfs_quota_us"}: "50000\n", {"cpu", "cpu.cfs_period_us"}: "100000\n",
	}
	v2 := map[[2]string]string{
		{"", "memory.max"}: "4096\n", {"", "memory.swap.max"}: "0\n", {"", "pids.max"}: "7\n", {"", "cpu.max"}: "150000 100000\n",
	}
	for _, c := range []struct {
		name  string
		files map[[2]string]string
		want  string
	}{
		{"v1", v1, "memory 4096 swap 8192 pids 7 cpus 0.5"},
		{"v1 without limits", with(v1, map[[2]string]string{{"memory", "memory.limit_in_bytes"}: "9223372036854771712\n",
			{"memory", "memory.memsw.limit_in_bytes"}: "-", {"pids", "pids.max"}: "max\n", {"cpu", "cpu.cfs_quota_us"}: "-1\n"}),
			"memory - swap - pids - cpus -"},
		{"v2", v2, "memory 4096 swap 0 pids 7 cpus 1.5"},
		{"v2 without limits", with(v2, map[[2]string]string{{"", "memory.max"}: "max\n", {"", "memory.swap.max"}: "-",
			{"", "pids.max"}: "max\n", {"", "cpu.max"}: "max 100000\n"}), "memory - swap - pids - cpus -"},
		{"v2 without the controllers", map[[2]string]string{{"", "cgroup.procs"}: ""}, "memory - swap - pids - cpus -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := fakeGroup(t, c.files).Limits()
			if got := showLimits(l); err != nil || got != c.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, c.want)
			}
		})
	}
	if _, err := fakeGroup(t, with(v2, map[[2]string]string{{"", "pids.max"}: "many\n"})).Limits(); err == nil {
		t.Error("nonsense was read")
	}
}

func TestShrink(t *testing.T) {
	v2 := map[[2]string]string{{"", "memory.current"}: "5000\n", {"", "memory.reclaim"}: ""}
	var inUse *MemoryInUseError
	g := fakeGroup(t, v2)
	if err := g.Shrink(5000); err != nil {
		t.Errorf("it fits: %v", err)
	}
	if asked := readFile(t, g.paths[unified], "memory.reclaim"); asked != "" {
		t.Errorf("it fits, and was asked for %s", asked)
	}
	if err := g.Shrink(4000); !errors.As(err, &inUse) || inUse.Bytes != 5000 {
		t.Errorf("it does not fit: %v", err)
	}
	if asked := readFile(t, g.paths[unified], "memory.reclaim"); asked != "1000" {
		t.Errorf("asked for %q", asked)
	}
	older := fakeGroup(t, with(v2, map[[2]string]string{{"", "memory.reclaim"}: "-"}))
	if err := older.Shrink(4000); !errors.As(err, &inUse) {
		t.Errorf("a kernel without reclaim: %v", err)
	}
	// On v1 the kernel itself refuses it.
	v1 := fakeGroup(t, map[[2]string]string{{"memory", "memory.usage_in_bytes"}: "5000\n"})
	if err := v1.Shrink(4000); err != nil {
		t.Errorf("v1: %v", err)
	}
	if err := absentGroup(t, "").Shrink(4000); err != nil {
		t.Errorf("a group that is gone: %v", err)
	}
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
