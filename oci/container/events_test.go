package container

import (
	"encoding/json"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/intelrdt"
)

// TestStatsHaveTheNamesThatCallersRead: in runc's format, figure by figure.
func TestStatsHaveTheNamesThatCallersRead(t *testing.T) {
	from := cgroups.NewStats()
	from.PidsStats = cgroups.PidsStats{Current: 1, Limit: 2}
	from.CpuStats.CpuUsage = cgroups.CpuUsage{TotalUsage: 3, UsageInKernelmode: 4, UsageInUsermode: 5, PercpuUsage: []uint64{6}}
	from.CpuStats.ThrottlingData = cgroups.ThrottlingData{Periods: 7, ThrottledPeriods: 8, ThrottledTime: 9}
	from.MemoryStats.Usage = cgroups.MemoryData{Usage: 10, MaxUsage: 11, Failcnt: 12, Limit: 13}
	from.MemoryStats.Stats["rss"] = 14
	from.HugetlbStats["2MB"] = cgroups.HugetlbStats{Usage: 15, MaxUsage: 16, Failcnt: 17}
	from.BlkioStats.IoQueuedRecursive = []cgroups.BlkioStatEntry{{Major: 8, Minor: 1, Op: "Read", Value: 18}}
	stats := statsOf(from)
	stats.IntelRdt = rdtStatsOf(&intelrdt.Stats{L3CacheInfo: &intelrdt.L3CacheInfo{CbmMask: "f"}, MemBwInfo: &intelrdt.MemBwInfo{NumClosids: 19}})
	text, err := json.Marshal(Event{Type: "stats", ID: "one", Data: stats})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		want any
		path []string
	}{
		{1.0, []string{"data", "pids", "current"}}, {2.0, []string{"data", "pids", "limit"}},
		{3.0, []string{"data", "cpu", "usage", "total"}}, {4.0, []string{"data", "cpu", "usage", "kernel"}}, {5.0, []string{"data", "cpu", "usage", "user"}},
		{7.0, []string{"data", "cpu", "throttling", "periods"}}, {9.0, []string{"data", "cpu", "throttling", "throttledTime"}},
		{10.0, []string{"data", "memory", "usage", "usage"}}, {11.0, []string{"data", "memory", "usage", "max"}},
		{12.0, []string{"data", "memory", "usage", "failcnt"}}, {13.0, []string{"data", "memory", "usage", "limit"}},
		{14.0, []string{"data", "memory", "raw", "rss"}}, {15.0, []string{"data", "hugetlb", "2MB", "usage"}},
		{"f", []string{"data", "intel_rdt", "l3_cache_info", "cbm_mask"}}, {19.0, []string{"data", "intel_rdt", "mem_bw_info", "num_closids"}},
	} {
		var at any = got
		for _, name := range row.path {
			inner, _ := at.(map[string]any)
			at = inner[name]
		}
		if at != row.want {
			t.Errorf("%v is %v, not %v", row.path, at, row.want)
		}
	}
	if len(stats.Blkio.IoQueuedRecursive) != 1 || stats.Blkio.IoQueuedRecursive[0].Value != 18 {
		t.Errorf("%+v", stats.Blkio)
	}
}

func TestWhatHasEndedHasNoUse(t *testing.T) {
	e := Engine{Root: t.TempDir()}
	kept(t, e, "one", 1<<22+1)
	c := load(t, e, "one")
	const want = "container with id one is not running"
	if _, err := c.Stats(); err == nil || err.Error() != want {
		t.Error(err)
	}
	if err := c.Follow(t.Context(), 1, func(Event) error { return nil }); err == nil || err.Error() != want {
		t.Error(err)
	}
}
