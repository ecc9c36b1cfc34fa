package cgroups

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/containerd/cgroups/v3/cgroup2"
	"github.com/containerd/cgroups/v3/cgroup2/stats"
)

// statsV2 takes figures from the library for each controller that the group has, because
// the library reports 0 for absent ones. The rest is read here.
func (g *Group) statsV2() (Stats, error) {
	dir := g.paths[unified]
	// The library joins a mount point and a group path. Splitting dir here needs no
	// knowledge of where the tree is mounted.
	manager, err := cgroup2.Load("/"+filepath.Base(dir), cgroup2.WithMountpoint(filepath.Dir(dir)))
	if err != nil {
		return Stats{}, fmt.Errorf("cannot open %s: %w", dir, err)
	}
	controllers, err := manager.Controllers()
	if err != nil {
		return Stats{}, err
	}
	figures, err := manager.StatFiltered(cgroup2.StatCPU | cgroup2.StatMemoryEvents | cgroup2.StatIO)
	if err != nil {
		return Stats{}, err
	}
	var s Stats
	s.addCPU(figures.CPU, slices.Contains(controllers, "cpu"))
	if slices.Contains(controllers, "memory") {
		s.addMemoryEvents(figures.MemoryEvents)
	}
	if slices.Contains(controllers, "io") {
		s.addIO(figures.Io)
	}
	return s, s.addOwnV2(dir)
}

// addCPU: every cgroup counts CPU time, but only one with the cpu controller counts throttling.
func (s *Stats) addCPU(cpu *stats.CPUStat, controlled bool) {
	if cpu == nil {
		return
	}
	s.CPU = duration(count(cpu.UsageUsec), time.Microsecond)
	s.CPUUser = duration(count(cpu.UserUsec), time.Microsecond)
	s.CPUSystem = duration(count(cpu.SystemUsec), time.Microsecond)
	if controlled {
		s.CPUThrottled = duration(count(cpu.ThrottledUsec), time.Microsecond)
		s.CPUThrottledPeriods = count(cpu.NrThrottled)
	}
}

// addMemoryEvents counts throttling above memory.high, OOMs at memory.max, and OOM kills, children included. See memory.events in the kernel's admin-guide/cgroup-v2.rst.
func (s *Stats) addMemoryEvents(events *stats.MemoryEvents) {
	if events == nil {
		return
	}
	s.MemoryHighEvents = count(events.High)
	s.MemoryLimitOOMs = count(events.Oom)
	s.OOMKills = count(events.OomKill)
}

// addIO sums io.stat over all devices. Reads from the page cache never reach a device and
// are not included. Writes count at write-back, which may be later.
func (s *Stats) addIO(io *stats.IOStat) {
	var read, written uint64
	for _, device := range io.GetUsage() {
		read += device.Rbytes
		written += device.Wbytes
	}
	s.IOReadBytes, s.IOWriteBytes = count(read), count(written)
}

// addOwnV2 reads files of later kernels, for which absence must be visible.
func (s *Stats) addOwnV2(dir string) error {
	var f files
	s.MemoryBytes = f.number(dir, "memory.current")
	s.MemoryPeakBytes = f.number(dir, "memory.peak")
	s.OOMGroupKills = at(f.keys(dir, "memory.events"), "oom_group_kill")
	s.Pids = f.number(dir, "pids.current")
	s.PidsPeak = f.number(dir, "pids.peak")
	s.PidsMaxEvents = at(f.keys(dir, "pids.events"), "max")
	return f.err
}

// count wraps a figure that exists; nil would mean that this kernel does not supply it.
func count(n uint64) *int64 {
	signed := int64(n)
	return &signed
}
