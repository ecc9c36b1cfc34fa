package agent

import (
	"fmt"
	"math"
	"strings"
	"time"

	"clove.run/clove/internal/rlimits"
)

// Validate rejects limits that no kernel accepts, and a 0 where there is always a limit.
func (l Limits) Validate() error {
	for _, size := range []struct {
		field string
		bytes int64
		floor int64
		none  bool // 0 means no limit
	}{
		{"limits.memory_bytes", l.MemoryBytes, MemoryFloorBytes, false},
		{"limits.disk_bytes", l.DiskBytes, DiskFloorBytes, false},
		{"limits.shm_bytes", l.ShmBytes, SizeFloor, false},
		{"limits.output_bytes", l.OutputBytes, 1, true},
	} {
		if size.none && size.bytes == 0 {
			continue
		}
		if err := checkSize(size.field, size.bytes, size.floor); err != nil {
			return err
		}
	}
	for _, check := range []func() error{
		func() error { return checkSwap(l.MemorySwapBytes, l.MemoryBytes) },
		func() error { return checkPids(l.Pids) },
		func() error { return checkCPUs(l.CPUs) },
		func() error { return checkClock("limits.cpu_time_ns", l.CPUTime) },
		func() error { return checkClock("limits.wall_clock_ns", l.WallClock) },
		func() error { return checkClock("limits.stop_grace_ns", l.StopGrace) },
		func() error { return checkText("limits.cpuset_cpus", l.CPUSet, targetMost) },
		func() error { return checkRlimits(l.Rlimits) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkSize compares a size with its own floor and the ceiling that all sizes share.
func checkSize(field string, bytes, floor int64) error {
	switch {
	case bytes < floor:
		return wrong(field, fmt.Sprintf("give at least %d bytes", floor), "%d bytes are too little", bytes)
	case bytes > SizeCeiling:
		return wrong(field, fmt.Sprintf("give at most %d bytes", int64(SizeCeiling)), "%d bytes are more than any machine has", bytes)
	}
	return nil
}

// checkSwap: the swap limit includes the memory, as in docker; -1 means any amount of swap.
func checkSwap(total, memory int64) error {
	if total != -1 && total < memory || total > SizeCeiling {
		return wrong("limits.memory_swap_bytes", fmt.Sprintf("it counts memory and swap together: give at least %d, or -1 for any amount of swap", memory),
			"%d bytes are not an amount of memory and swap", total)
	}
	return nil
}

// checkPids has no value for "no limit": without one a fork bomb would take the host's
// process ids.
func checkPids(n int64) error {
	if n < PidsFloor || n > PidsCeiling {
		return wrong("limits.pids", fmt.Sprintf("give a number from %d to %d: the sandbox itself needs some, and there is always a limit", PidsFloor, PidsCeiling),
			"%d is not a limit of processes", n)
	}
	return nil
}

// checkCPUs accepts 0 for no limit. NaN fails every comparison, so it is rejected by name.
func checkCPUs(n float64) error {
	if n != 0 && !(n >= CPUsFloor && n <= CPUsCeiling) || math.IsNaN(n) {
		return wrong("limits.cpus", fmt.Sprintf("give at least %v, for example 1.5, or omit it for no limit", CPUsFloor), "%v is not a number of CPUs", n)
	}
	return nil
}

// checkClock accepts 0, which means no limit for the clocks that have none, and no grace.
func checkClock(field string, d time.Duration) error {
	if d < 0 || d > ClockCeiling {
		return wrong(field, "give a time of at most a hundred years, or omit it", "%d ns are not a time", int64(d))
	}
	return nil
}

// checkRlimits requires nofile, because the agent would otherwise have the limit that clove
// or cloved was started with.
func checkRlimits(limits []Rlimit) error {
	seen := map[string]bool{}
	for _, l := range limits {
		_, known := rlimits.Resource(l.Name)
		switch {
		case !known:
			return wrong("limits.rlimits", "it takes "+strings.Join(rlimits.Names(), ", "), "there is no resource limit %.64q", l.Name)
		case seen[l.Name]:
			return wrong("limits.rlimits", "name each limit once", "%s is there twice", l.Name)
		case l.Soft > l.Hard:
			return wrong("limits.rlimits", "give a hard limit that is not below the soft one", "%s has a soft limit above the hard one", l.Name)
		}
		seen[l.Name] = true
	}
	if !seen["nofile"] {
		return wrong("limits.rlimits", "add it, for example with 4096", "the resource limit nofile is missing, and every run needs one")
	}
	return nil
}

// Validate rejects values that no limit can have. Only the supervisor can tell whether the
// agent already uses more, and whether this run supports the change.
func (u Update) Validate() error {
	if u.MemoryBytes != nil {
		if err := checkSize("memory_bytes", *u.MemoryBytes, MemoryFloorBytes); err != nil {
			return err
		}
	}
	// The new memory limit may be unknown here (nil: unchanged), so the floor of memory is
	// the only lower bound. The supervisor compares the two.
	if u.MemorySwapBytes != nil {
		if err := checkSwap(*u.MemorySwapBytes, MemoryFloorBytes); err != nil {
			return err
		}
	}
	if u.CPUs != nil {
		if *u.CPUs == 0 {
			return wrong("cpus", "give at least 0.01", "0 is not a number of CPUs")
		}
		if err := checkCPUs(*u.CPUs); err != nil {
			return err
		}
	}
	if u.Pids != nil {
		if err := checkPids(*u.Pids); err != nil {
			return err
		}
	}
	if u.WallClock != nil {
		if err := checkClock("wall_clock_ns", *u.WallClock); err != nil {
			return err
		}
	}
	if u.Rules != nil {
		return ValidateRules(*u.Rules)
	}
	return nil
}
