package runtime

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
	"clove.run/clove/internal/boottime"
)

// anyNumber draws numbers as callers send them: mostly near a bound, some far beyond.
func anyNumber(t *rapid.T, name string, near ...int64) int64 {
	generators := []*rapid.Generator[int64]{rapid.Int64(), rapid.Int64Range(-2, 2)}
	for _, n := range near {
		generators = append(generators, rapid.Int64Range(n-1, n+1), rapid.Int64Range(n, 4*n))
	}
	return rapid.OneOf(generators...).Draw(t, name)
}

// anyLimits draws limits that may make no sense.
func anyLimits(t *rapid.T) agent.Limits {
	l := agent.Limits{
		MemoryBytes: anyNumber(t, "memory", agent.MemoryFloorBytes, agent.SizeCeiling/4), Pids: anyNumber(t, "pids", agent.PidsFloor, agent.PidsCeiling/4),
		DiskBytes: anyNumber(t, "disk", agent.DiskFloorBytes), ShmBytes: anyNumber(t, "shm", agent.SizeFloor, 1<<20),
		CPUs:    rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 8), rapid.SampledFrom([]float64{0, agent.CPUsFloor, agent.CPUsCeiling, -2, math.Inf(1), math.NaN()})).Draw(t, "cpus"),
		CPUTime: time.Duration(anyNumber(t, "cpu time", int64(time.Second))), WallClock: time.Duration(anyNumber(t, "wall clock", int64(time.Second))),
		StopGrace: time.Duration(anyNumber(t, "grace", int64(time.Second))), OutputBytes: anyNumber(t, "output", 1<<20),
		Rlimits: []agent.Rlimit{{Name: "nofile", Soft: rapid.Uint64Range(0, 4096).Draw(t, "soft"), Hard: rapid.Uint64Range(0, 4096).Draw(t, "hard")}},
	}
	l.MemorySwapBytes = rapid.OneOf(rapid.Just(l.MemoryBytes), rapid.Just(int64(-1)), rapid.Just(int64(0)), rapid.Int64()).Draw(t, "swap")
	return l
}

// soundLimits draws limits that are mostly valid: only now and then one of them is any value.
// Otherwise almost nothing would be accepted.
func soundLimits(t *rapid.T) agent.Limits {
	l, sound := anyLimits(t), asked(agent.User{}).Limits
	keep := rapid.IntRange(0, 9).Draw(t, "which is drawn") // the others are valid
	pick := func(i int, take func()) {
		if i != keep {
			take()
		}
	}
	if rapid.Bool().Draw(t, "all are drawn") {
		return l
	}
	pick(0, func() { l.MemoryBytes, l.MemorySwapBytes = sound.MemoryBytes, sound.MemorySwapBytes })
	pick(1, func() { l.Pids = sound.Pids })
	pick(2, func() { l.DiskBytes = sound.DiskBytes })
	pick(3, func() { l.ShmBytes = sound.ShmBytes })
	pick(4, func() { l.CPUs = sound.CPUs })
	pick(5, func() { l.CPUTime = time.Second })
	pick(6, func() { l.WallClock = time.Second })
	pick(7, func() { l.StopGrace = time.Second })
	pick(8, func() { l.OutputBytes = 1 << 20 })
	pick(9, func() { l.Rlimits = sound.Rlimits })
	return l
}

// TestWhatIsValidIsWritten: the launch passes a limit that Validate accepts to the kernel, to
// clove-init or to a watch of its own, and the record names each requested limit. None becomes
// "no limit" on the way.
func TestWhatIsValidIsWritten(t *testing.T) {
	t.Parallel()
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		spec := asked(agent.User{Name: "agent", UID: 1000, GID: 1000, Home: "/home/agent"})
		spec.Command, spec.Limits, spec.Dir = []string{"true"}, soundLimits(t), "/"
		if spec.Validate() != nil {
			refused++
			return
		}
		accepted++
		if wrong := lostLimit(spec); wrong != "" {
			t.Errorf("%+v: %s", spec.Limits, wrong)
		}
	})
	if accepted == 0 || refused == 0 {
		t.Errorf("%d were accepted, %d refused", accepted, refused)
	}
}

// lostLimit names a limit of a spec that the launch would not enforce; empty: none.
func lostLimit(spec agent.Spec) string {
	l := spec.Limits
	made := compile(spec, around())
	r := made.Linux.Resources
	quota := int64(0)
	if r.CPU.Quota != nil {
		quota = *r.CPU.Quota
	}
	shm := false
	for _, m := range made.Mounts {
		shm = shm || m.Destination == "/dev/shm" && slices.Contains(m.Options, fmt.Sprintf("size=%d", l.ShmBytes))
	}
	orders := agentOrders(spec, spec.Limits.Rlimits)
	if err := orders.Validate(); err != nil {
		return "clove-init refuses it: " + err.Error()
	}
	for _, held := range []struct {
		what string
		is   bool
	}{
		{"memory", r.Memory.Limit != nil && *r.Memory.Limit == l.MemoryBytes && l.MemoryBytes > 0},
		{"swap", r.Memory.Swap != nil && *r.Memory.Swap == l.MemorySwapBytes && (l.MemorySwapBytes == -1 || l.MemorySwapBytes >= l.MemoryBytes)},
		{"pids", r.Pids != nil && r.Pids.Limit != nil && *r.Pids.Limit == l.Pids && l.Pids > 0},
		{"cpus", l.CPUs == 0 && quota == 0 || quota >= cpuQuotaMin && math.Abs(float64(quota)/cpuPeriod-l.CPUs) <= 1e-5},
		{"shm", shm && l.ShmBytes > 0},
		{"disk", rootConfig(Paths{}, spec, agent.FirstHostID).DiskBytes == l.DiskBytes && l.DiskBytes > 0},
		{"output", newStreams(l.OutputBytes).limit == l.OutputBytes && l.OutputBytes >= 0},
		{"wall clock", orders.WallClock == l.WallClock && l.WallClock >= 0 && time.Duration(boottime.NowNS())+l.WallClock+l.StopGrace > 0},
		{"grace", orders.StopGrace == l.StopGrace && l.StopGrace >= 0},
		{"rlimits", len(orders.Rlimits) == len(l.Rlimits) && orders.Rlimits[0].Hard == l.Rlimits[0].Hard && l.Rlimits[0].Soft <= l.Rlimits[0].Hard},
	} {
		if !held.is {
			return held.what
		}
	}
	for name, wanted := range map[string]bool{agent.ControlCPU: l.CPUs != 0, agent.ControlCPUTime: l.CPUTime != 0, agent.ControlWallClock: l.WallClock != 0, agent.ControlOutput: l.OutputBytes != 0} {
		i := slices.IndexFunc(controls, func(c controlled) bool { return c.name == name })
		if i < 0 || controls[i].asked(spec) != wanted {
			return name + " is not in the record"
		}
	}
	return ""
}
