package monitor

import (
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/boottime"
)

// record is the record of the container, with what can be known from outside: disk,
// output and denials are the engine's.
func (m *monitor) record(e end) agent.Record {
	m.countKills(len(m.memory)) // first: systemd may be about to remove the cgroup
	if m.unwatch != nil {
		m.unwatch()
	}
	stats, _ := m.group.Stats() // a figure that is missing stays absent
	if kills := m.oomKills; kills > 0 {
		stats.OOMKills = &kills
	}
	if e.at.IsZero() {
		e.at = time.Now()
		e.boot = time.Duration(boottime.NowNS())
	}
	wall := (e.boot - m.order.StartedAt).Milliseconds()
	v := judge(m.order.Limits, seen{
		expired: m.order.Phase == phaseExpired, status: e.status, unknown: e.unknown,
		oomKills: m.oomKills, wallMS: wall, memoryPeak: stats.MemoryPeakBytes,
	})
	return agent.Record{
		Version: agent.RecordVersion, ID: agent.ID(m.order.ID), Name: m.order.ID, Command: m.order.Command,
		Started: m.order.Started.UTC(), Ended: e.at.UTC(), WallMS: wall,
		Status: v.status, ExitCode: v.exitCode, Signal: v.signal, Error: v.failure, Limit: v.limit,
		Usage: usage(stats), Events: events(stats),
		Denials: []agent.Denial{}, Enforced: enforced(m.order.Limits, m.host.Mode()), Unenforced: []string{},
		Host: agent.Host{Kernel: kernelRelease(), Cgroup: string(m.host.Mode())},
	}
}

// usage leaves out what the cgroup does not count here; absent is not zero.
func usage(stats cgroups.Stats) agent.Usage {
	return agent.Usage{
		CPUMS: millis(stats.CPU), CPUUserMS: millis(stats.CPUUser), CPUSystemMS: millis(stats.CPUSystem),
		CPUThrottledMS: millis(stats.CPUThrottled), MemoryPeakBytes: stats.MemoryPeakBytes, PidsPeak: stats.PidsPeak,
		IOReadBytes: stats.IOReadBytes, IOWriteBytes: stats.IOWriteBytes,
	}
}

// events are the kernel's counters of limits that were hit.
func events(stats cgroups.Stats) agent.Events {
	return agent.Events{
		OOMKill: stats.OOMKills, PidsMax: stats.PidsMaxEvents,
		MemoryHigh: stats.MemoryHighEvents, CPUThrottledPeriods: stats.CPUThrottledPeriods,
	}
}

// enforced names what enforces each of clove's own rules; those of the engine are not
// in the record.
func enforced(limits agent.Limits, mode cgroups.Mode) map[string]string {
	generation := "cgroup1"
	if mode == cgroups.ModeV2 {
		generation = "cgroup2"
	}
	held := map[string]string{}
	for _, rule := range []struct {
		control, how string
		asked        bool
	}{
		{agent.ControlWallClock, "timerfd", limits.WallClock != 0},
		{agent.ControlMemory, generation, limits.MemoryBytes != 0},
		{agent.ControlMemorySwap, generation, limits.MemorySwapBytes != 0},
		{agent.ControlPids, generation, limits.Pids != 0},
		{agent.ControlCPU, generation, limits.CPUs != 0},
	} {
		if rule.asked {
			held[rule.control] = rule.how
		}
	}
	return held
}

// millis keeps an absent figure absent.
func millis(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}
