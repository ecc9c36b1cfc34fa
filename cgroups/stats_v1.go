package cgroups

import (
	"math/big"
	"time"
)

// statsV1 reads the v1 hierarchies; doc.go says why not with the library. It supplies no
// figures of I/O, because v1 has no true ones: buffered writes are charged to the root, and
// Linux 6.18 reports 0 unless a throttle rule is set.
func (g *Group) statsV1() (Stats, error) {
	var f files
	var s Stats
	g.cpuV1(&f, &s)
	memory, pids := g.paths["memory"], g.paths["pids"]
	s.MemoryBytes = f.number(memory, "memory.usage_in_bytes")
	s.MemoryPeakBytes = f.number(memory, "memory.max_usage_in_bytes")
	if kills, err := g.OOMKills(); err == nil {
		s.OOMKills = &kills
	}
	s.Pids = f.number(pids, "pids.current")
	s.PidsPeak = f.number(pids, "pids.peak")
	s.PidsMaxEvents = at(f.keys(pids, "pids.events"), "max")
	return s, f.err
}

// cpuV1 reads cpu and cpuacct by their own paths: they usually share a mount, but need not.
func (g *Group) cpuV1(f *files, s *Stats) {
	throttling := f.keys(g.paths["cpu"], "cpu.stat")
	s.CPUThrottled = duration(at(throttling, "throttled_time"), time.Nanosecond)
	s.CPUThrottledPeriods = at(throttling, "nr_throttled")
	accounts := g.paths["cpuacct"]
	s.CPU = duration(f.number(accounts, "cpuacct.usage"), time.Nanosecond)
	user := f.number(accounts, "cpuacct.usage_user")
	system := f.number(accounts, "cpuacct.usage_sys")
	if s.CPU != nil && user != nil && system != nil {
		s.CPUUser, s.CPUSystem = share(*s.CPU, *user, *system)
	}
}

// share splits total in the ratio of user and system. v1 measures the total exactly but
// samples the parts at clock ticks, so they do not add up. v2 and getrusage(2) scale them
// in the same way. A total without any sample counts as user time, as there.
func share(total time.Duration, user, system int64) (u, s *time.Duration) {
	inKernel := time.Duration(0)
	if system > 0 {
		// total * system overflows 64 bits after a few seconds.
		product := new(big.Int).Mul(big.NewInt(int64(total)), big.NewInt(system))
		sum := new(big.Int).Add(big.NewInt(user), big.NewInt(system))
		inKernel = time.Duration(product.Div(product, sum).Int64())
	}
	inUser := total - inKernel
	return &inUser, &inKernel
}
