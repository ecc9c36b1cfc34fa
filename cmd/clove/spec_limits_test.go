package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

func TestLimitFlags(t *testing.T) {
	const mebibyte = 1 << 20
	for _, c := range []struct {
		line string
		want func(*agent.Limits)
	}{
		{"", func(*agent.Limits) {}},
		{"--memory 256M", func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes = 256*mebibyte, 256*mebibyte }},
		{"-m 16m", func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes = 16*mebibyte, 16*mebibyte }},
		{"--memory 1.5GiB", func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes = 1536*mebibyte, 1536*mebibyte }},
		{"--memory 64M --memory-swap 128M", func(l *agent.Limits) { l.MemoryBytes, l.MemorySwapBytes = 64*mebibyte, 128*mebibyte }},
		{"--memory-swap -1", func(l *agent.Limits) { l.MemorySwapBytes = -1 }},
		{"--cpus 0.5", func(l *agent.Limits) { l.CPUs = 0.5 }},
		{"--cpus 4", func(l *agent.Limits) { l.CPUs = 4 }},
		{"--cpuset-cpus 3,0-1,1", func(l *agent.Limits) { l.CPUSet = "0-1,3" }},
		{"--pids-limit 16", func(l *agent.Limits) { l.Pids = 16 }},
		{"--cpu-time 90", func(l *agent.Limits) { l.CPUTime = 90 * time.Second }},
		{"--timeout 1.5", func(l *agent.Limits) { l.WallClock = 1500 * time.Millisecond }},
		{"--timeout 2h30m", func(l *agent.Limits) { l.WallClock = 150 * time.Minute }},
		{"--stop-timeout 0", func(l *agent.Limits) { l.StopGrace = 0 }},
		{"--output-limit 10K", func(l *agent.Limits) { l.OutputBytes = 10240 }},
		{"--disk 64M", func(l *agent.Limits) { l.DiskBytes = 64 * mebibyte }},
		{"--shm-size 1M", func(l *agent.Limits) { l.ShmBytes = mebibyte }},
	} {
		b := newBench(t)
		got := b.spec(append(strings.Fields(c.line), "--", "true")...).Limits
		want := policies.Standard().Limits
		c.want(&want)
		if !slices.Equal(got.Rlimits, want.Rlimits) {
			t.Errorf("%q: rlimits %v, want %v", c.line, got.Rlimits, want.Rlimits)
		}
		got.Rlimits, want.Rlimits = nil, nil
		if !equalLimits(got, want) {
			t.Errorf("%q:\n%+v, want\n%+v", c.line, got, want)
		}
	}
}

func equalLimits(a, b agent.Limits) bool {
	return a.MemoryBytes == b.MemoryBytes && a.MemorySwapBytes == b.MemorySwapBytes && a.CPUs == b.CPUs && a.CPUSet == b.CPUSet &&
		a.Pids == b.Pids && a.CPUTime == b.CPUTime && a.WallClock == b.WallClock && a.StopGrace == b.StopGrace &&
		a.OutputBytes == b.OutputBytes && a.DiskBytes == b.DiskBytes && a.ShmBytes == b.ShmBytes
}

func TestUlimitsLieOverTheLevels(t *testing.T) {
	spec := newBench(t).spec("--ulimit", "nofile=10:20", "--ulimit", "stack=-1", "--ulimit", "as=1000000", "--ulimit", "nofile=30", "--", "true")
	want := []agent.Rlimit{
		{Name: "as", Soft: 1000000, Hard: 1000000},
		{Name: "core"},
		{Name: "nice"},
		{Name: "nofile", Soft: 30, Hard: 30},
		{Name: "rtprio"},
		{Name: "stack", Soft: agent.RlimitInfinity, Hard: agent.RlimitInfinity},
	}
	if !slices.Equal(spec.Limits.Rlimits, want) {
		t.Errorf("%+v", spec.Limits.Rlimits)
	}
	if standard := policies.Standard().Limits.Rlimits; len(standard) != 4 {
		t.Errorf("the level itself changed: %+v", standard)
	}
}
