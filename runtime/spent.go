package runtime

import (
	"time"

	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
)

// launchUse is the CPU time that the launch used in the agent's cgroup: libcontainer and
// clove-init run there before the agent, and what they use until its execve is no part of
// the agent's.
func launchUse(s initproto.Spent) cgroups.CPUUse {
	return cgroups.CPUUse{Total: time.Duration(s.CPUNS), User: time.Duration(s.CPUUserNS), System: time.Duration(s.CPUSystemNS)}
}

// spentAll is for an agent that never executed: all that was counted is the
// launch's.
func spentAll(s cgroups.Stats) initproto.Spent {
	return initproto.Spent{CPUNS: int64(orZero(s.CPU)), CPUUserNS: int64(orZero(s.CPUUser)),
		CPUSystemNS: int64(orZero(s.CPUSystem)), MemoryPeakBytes: orZero(s.MemoryPeakBytes)}
}

func orZero[N ~int64](n *N) N {
	if n == nil {
		return 0
	}
	return *n
}

// positive is nil for 0, which stands for an unknown figure.
func positive(n int64) *int64 {
	if n <= 0 {
		return nil
	}
	return &n
}
