package runtime

import (
	"errors"
	"fmt"
	"math"
	"slices"

	libcgroups "github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/undo"
)

// applyLimits brings the cgroup from the old limits to the new ones and looks
// whether they hold. The agent stands still meanwhile where the kernel would
// kill for a limit that it just exceeds.
func (s *supervisor) applyLimits(from, to agent.Limits, steps *undo.Stack) error {
	change, changed := resourcesBetween(from, to, s.facts.cgroups.SwapAccounting())
	if !changed {
		return nil
	}
	if to.MemoryBytes < from.MemoryBytes && !s.frozen() && s.facts.cgroups.Mode() == cgroups.ModeV2 {
		if err := s.group.Freeze(); err != nil {
			return &agent.Error{Step: "update", Message: "cannot hold the agent still", Err: errors.Join(err, s.group.Thaw())}
		}
		defer s.group.Thaw()
	}
	if to.MemoryBytes < from.MemoryBytes {
		if err := s.group.Shrink(to.MemoryBytes); err != nil {
			return s.limitRefused(to, err)
		}
	}
	back, _ := resourcesBetween(to, from, s.facts.cgroups.SwapAccounting())
	steps.Add("limits", func() error { return errors.Join(s.writeLimits(back), s.limitSockets(from)) })
	if err := errors.Join(s.writeLimits(change), s.limitSockets(to)); err != nil {
		return s.limitRefused(to, err)
	}
	return s.verifyLimits(from, to)
}

// resourcesBetween are what differs, in libcontainer's terms; what is absent
// there stays as it is.
func resourcesBetween(from, to agent.Limits, swapLimited bool) (*libcgroups.Resources, bool) {
	r := &libcgroups.Resources{SkipDevices: true}
	changed := false
	if from.MemoryBytes != to.MemoryBytes || from.MemorySwapBytes != to.MemorySwapBytes {
		r.Memory, changed = to.MemoryBytes, true
		if swapLimited {
			r.MemorySwap = to.MemorySwapBytes
		}
	}
	if from.Pids != to.Pids {
		r.PidsLimit, changed = &to.Pids, true
	}
	if from.CPUs != to.CPUs {
		r.CpuQuota, r.CpuPeriod, changed = -1, cpuPeriod, true
		if to.CPUs > 0 {
			r.CpuQuota = max(int64(math.Round(to.CPUs*cpuPeriod)), cpuQuotaMin)
		}
	}
	return r, changed
}

// writeLimits uses a manager of its own: the container's is locked for as long
// as a process enters the sandbox.
func (s *supervisor) writeLimits(r *libcgroups.Resources) error {
	m, err := manager.NewWithPaths(&libcgroups.Cgroup{Resources: &libcgroups.Resources{}}, s.run.Lease.Cgroups)
	if err != nil {
		return fmt.Errorf("cannot open the cgroup: %w", err)
	}
	return m.Set(r)
}

// limitRefused says what the kernel had against it.
func (s *supervisor) limitRefused(to agent.Limits, err error) error {
	var inUse *cgroups.MemoryInUseError
	if !errors.As(err, &inUse) {
		// v1 says only EBUSY, and libcontainer not even that.
		if now, serr := s.group.Stats(); serr == nil && now.MemoryBytes != nil && *now.MemoryBytes > to.MemoryBytes {
			inUse = &cgroups.MemoryInUseError{Bytes: *now.MemoryBytes}
		}
	}
	if inUse != nil {
		return &agent.Error{Kind: agent.KindConflict, Step: "update " + agent.ControlMemory,
			Message: fmt.Sprintf("%s uses %d bytes, more than %d", s.spec.Name, inUse.Bytes, to.MemoryBytes),
			Hint:    "give more than it uses, or stop it; `clove stats` shows it", Err: err}
	}
	return &agent.Error{Step: "update", Message: "the kernel does not take these limits", Err: err,
		Hint: "nothing was changed; `clove doctor` shows what this host can hold"}
}

// verifyLimits reads back what was changed.
func (s *supervisor) verifyLimits(from, to agent.Limits) error {
	held, err := s.group.Limits()
	if err != nil {
		return agent.Failed("update", err)
	}
	now, err := s.group.Stats()
	if err != nil {
		return agent.Failed("update", err)
	}
	var wrong []string
	// The kernel counts memory in pages.
	if from.MemoryBytes != to.MemoryBytes && (held.MemoryBytes == nil || *held.MemoryBytes > to.MemoryBytes) {
		wrong = append(wrong, agent.ControlMemory)
	}
	if from.MemoryBytes != to.MemoryBytes && held.SocketBytes != nil && *held.SocketBytes > to.SocketBytes()/2 {
		wrong = append(wrong, agent.ControlSockets)
	}
	if from.Pids != to.Pids {
		if held.Pids == nil || *held.Pids != to.Pids {
			wrong = append(wrong, agent.ControlPids)
		} else if now.Pids != nil && *now.Pids > to.Pids {
			// The kernel takes such a limit and lets them live.
			return &agent.Error{Kind: agent.KindConflict, Step: "update " + agent.ControlPids,
				Message: fmt.Sprintf("%s has %d processes and threads, more than %d", s.spec.Name, *now.Pids, to.Pids),
				Hint:    "give more than it has, or stop it; `clove stats` shows it"}
		}
	}
	if from.CPUs != to.CPUs && to.CPUs > 0 && (held.CPUs == nil || math.Abs(*held.CPUs-to.CPUs) > 2.0/cpuPeriod) {
		wrong = append(wrong, agent.ControlCPU)
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "update", Message: fmt.Sprintf("the kernel does not hold %v", wrong),
			Hint: "nothing was changed; `clove doctor` shows what this host can hold"}
	}
	return nil
}
