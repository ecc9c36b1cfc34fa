package cgroups

import (
	"strings"
	"time"
)

// statsV2 reads the v2 files; see the kernel's admin-guide/cgroup-v2.rst. Every cgroup has
// cpu.stat, without the controller only with what was used; each other file exists where its
// controller is enabled.
func (g *Group) statsV2() (Stats, error) {
	var f files
	var s Stats
	dir := g.paths[unified]
	cpu := f.keys(dir, "cpu.stat")
	s.CPU = duration(at(cpu, "usage_usec"), time.Microsecond)
	s.CPUUser = duration(at(cpu, "user_usec"), time.Microsecond)
	s.CPUSystem = duration(at(cpu, "system_usec"), time.Microsecond)
	s.CPUThrottled = duration(at(cpu, "throttled_usec"), time.Microsecond)
	s.CPUThrottledPeriods = at(cpu, "nr_throttled")
	s.MemoryBytes = f.number(dir, "memory.current")
	s.MemoryPeakBytes = f.number(dir, "memory.peak")
	events := f.keys(dir, "memory.events") // of the sub-cgroups, too
	s.MemoryHighEvents = at(events, "high")
	s.MemoryLimitEvents = at(events, "max")
	s.OOMKills = at(events, "oom_kill")
	s.OOMGroupKills = at(events, "oom_group_kill")
	s.Pids = f.number(dir, "pids.current")
	s.PidsPeak = f.number(dir, "pids.peak")
	s.PidsMaxEvents = at(f.keys(dir, "pids.events"), "max")
	s.IOReadBytes, s.IOWriteBytes = f.transferred(dir)
	return s, f.err
}

// transferred sums io.stat over all devices. Reads from the page cache never reach a device
// and are not included. Writes count at write-back, which may be later. The file is empty
// until something was transferred.
func (f *files) transferred(dir string) (read, written *int64) {
	words := f.words(dir, "io.stat")
	if words == nil {
		return nil, nil
	}
	sums := map[string]int64{"rbytes": 0, "wbytes": 0}
	for _, word := range words { // DEVICE KEY=NUMBER KEY=NUMBER …
		key, number, _ := strings.Cut(word, "=")
		if _, wanted := sums[key]; !wanted {
			continue
		}
		n, err := parseCount(number)
		if err != nil {
			f.fail(dir, "io.stat", err)
			return nil, nil
		}
		sums[key] += n
	}
	return at(sums, "rbytes"), at(sums, "wbytes")
}
