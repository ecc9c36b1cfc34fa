package container

import (
	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/runc/libcontainer/intelrdt"
	"github.com/opencontainers/runc/types"
)

// statsOf converts a cgroup's counters to types.Stats, whose JSON names are what callers of
// runc parse.
func statsOf(from *cgroups.Stats) *types.Stats {
	stats := &types.Stats{
		CPU:    cpuStatsOf(&from.CpuStats),
		CPUSet: types.CPUSet(from.CPUSetStats),
		Memory: memoryStatsOf(&from.MemoryStats),
		Pids:   types.Pids{Current: from.PidsStats.Current, Limit: from.PidsStats.Limit},
		Blkio:  blockStatsOf(&from.BlkioStats),

		Hugetlb: map[string]types.Hugetlb{},
	}
	for size, pages := range from.HugetlbStats {
		stats.Hugetlb[size] = types.Hugetlb{Usage: pages.Usage, Max: pages.MaxUsage, Failcnt: pages.Failcnt}
	}
	return stats
}

// Times are in nanoseconds. The values for each CPU exist on cgroup v1 only.
func cpuStatsOf(from *cgroups.CpuStats) types.Cpu {
	usage := &from.CpuUsage
	return types.Cpu{
		Usage: types.CpuUsage{
			Total: usage.TotalUsage, Kernel: usage.UsageInKernelmode, User: usage.UsageInUsermode,
			Percpu: usage.PercpuUsage, PercpuKernel: usage.PercpuUsageInKernelmode, PercpuUser: usage.PercpuUsageInUsermode,
		},
		Throttling: types.Throttling{Periods: from.ThrottlingData.Periods,
			ThrottledPeriods: from.ThrottlingData.ThrottledPeriods, ThrottledTime: from.ThrottlingData.ThrottledTime},
		PSI: from.PSI,
	}
}

// Sizes are in bytes; raw is memory.stat, whose names differ between cgroup v1 and v2.
func memoryStatsOf(from *cgroups.MemoryStats) types.Memory {
	entry := func(data cgroups.MemoryData) types.MemoryEntry {
		return types.MemoryEntry{Limit: data.Limit, Usage: data.Usage, Max: data.MaxUsage, Failcnt: data.Failcnt}
	}
	return types.Memory{
		Cache: from.Cache, Usage: entry(from.Usage), Swap: entry(from.SwapUsage),
		Kernel: entry(from.KernelUsage), KernelTCP: entry(from.KernelTCPUsage), Raw: from.Stats, PSI: from.PSI,
	}
}

// On cgroup v2 only io_service_bytes and io_serviced have entries: io.stat knows no queues
// and times.
func blockStatsOf(from *cgroups.BlkioStats) types.Blkio {
	entries := func(all []cgroups.BlkioStatEntry) []types.BlkioEntry {
		converted := make([]types.BlkioEntry, 0, len(all))
		for _, entry := range all {
			converted = append(converted, types.BlkioEntry(entry))
		}
		return converted
	}
	return types.Blkio{
		IoServiceBytesRecursive: entries(from.IoServiceBytesRecursive), IoServicedRecursive: entries(from.IoServicedRecursive),
		IoQueuedRecursive: entries(from.IoQueuedRecursive), IoServiceTimeRecursive: entries(from.IoServiceTimeRecursive),
		IoWaitTimeRecursive: entries(from.IoWaitTimeRecursive), IoMergedRecursive: entries(from.IoMergedRecursive),
		IoTimeRecursive: entries(from.IoTimeRecursive), SectorsRecursive: entries(from.SectorsRecursive), PSI: from.PSI,
	}
}

// rdtStatsOf is empty on a machine without Intel's Resource Director Technology.
func rdtStatsOf(from *intelrdt.Stats) types.IntelRdt {
	if from == nil {
		return types.IntelRdt{}
	}
	stats := types.IntelRdt{
		L3CacheSchemaRoot: from.L3CacheSchemaRoot, L3CacheSchema: from.L3CacheSchema,
		MemBwSchemaRoot: from.MemBwSchemaRoot, MemBwSchema: from.MemBwSchema,
		Schemata: from.Schemata, MBMStats: from.MBMStats, CMTStats: from.CMTStats,
	}
	if from.L3CacheInfo != nil {
		info := types.L3CacheInfo(*from.L3CacheInfo)
		stats.L3CacheInfo = &info
	}
	if from.MemBwInfo != nil {
		info := types.MemBwInfo(*from.MemBwInfo)
		stats.MemBwInfo = &info
	}
	return stats
}
