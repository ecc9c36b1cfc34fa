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

// limiter changes the limits of a cgroup in use.
type limiter struct {
	name   string // the run's
	group  *cgroups.Group
	paths  map[string]string // the cgroup's
	host   *cgroups.Host
	bound  func(agent.Limits) error // limits what sockets hold
	frozen bool                     // the agent is frozen anyway
}

// apply brings the cgroup from the old limits to the new ones and looks whether
// they hold. On v2 the agent is frozen while its memory limit falls: the kernel
// kills for a limit that is exceeded, and one that grows meanwhile would exceed it.
func (c limiter) apply(from, to agent.Limits, steps *undo.Stack) error {
	change, changed := resourcesBetween(from, to, c.host.SwapAccounting())
	if !changed {
		return nil
	}
	if to.MemoryBytes < from.MemoryBytes && !c.frozen && c.host.Mode() == cgroups.ModeV2 {
		if err := c.group.Freeze(); err != nil {
			return &agent.Error{Step: "update", Message: "cannot freeze the agent", Err: errors.Join(err, c.group.Thaw())}
		}
		defer c.group.Thaw()
	}
	if to.MemoryBytes < from.MemoryBytes {
		if err := c.group.Shrink(to.MemoryBytes); err != nil {
			return c.refused(to, err)
		}
	}
	// Noted before the write, which may fail after it changed some of the files.
	back, _ := resourcesBetween(to, from, c.host.SwapAccounting())
	steps.Add("limits", func() error { return errors.Join(c.write(back), c.bound(from)) })
	if err := errors.Join(c.write(change), c.bound(to)); err != nil {
		return c.refused(to, err)
	}
	return c.verify(from, to)
}

// resourcesBetween are what differs, in libcontainer's terms; what is absent
// there stays as it is.
func resourcesBetween(from, to agent.Limits, swapLimited bool) (*libcgroups.Resources, bool) {
	// Without SkipDevices, libcontainer would replace the device rules by this value's,
	// which has none.
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

// write uses a manager of its own: the container's is locked for as long
// as a process enters the sandbox.
func (c limiter) write(r *libcgroups.Resources) error {
	m, err := manager.NewWithPaths(&libcgroups.Cgroup{Resources: &libcgroups.Resources{}}, c.paths)
	if err != nil {
		return fmt.Errorf("cannot open the cgroup: %w", err)
	}
	return m.Set(r)
}

// refused is the error for limits that the kernel did not take.
func (c limiter) refused(to agent.Limits, err error) error {
	var inUse *cgroups.MemoryInUseError
	if !errors.As(err, &inUse) {
		// v1 says only EBUSY, and libcontainer not even that.
		if now, serr := c.group.Stats(); serr == nil && now.MemoryBytes != nil && *now.MemoryBytes > to.MemoryBytes {
			inUse = &cgroups.MemoryInUseError{Bytes: *now.MemoryBytes}
		}
	}
	if inUse != nil {
		return &agent.Error{Kind: agent.KindConflict, Step: "update " + agent.ControlMemory,
			Message: fmt.Sprintf("%s uses %d bytes, more than %d", c.name, inUse.Bytes, to.MemoryBytes),
			Hint:    "give more than it uses, or stop it; `clove stats` shows it", Err: err}
	}
	return &agent.Error{Step: "update", Message: "the kernel does not take these limits", Err: err,
		Hint: "nothing was changed; `clove doctor` shows what this host can enforce"}
}

// verify reads back what was changed.
func (c limiter) verify(from, to agent.Limits) error {
	held, err := c.group.Limits()
	if err != nil {
		return agent.Failed("update", err)
	}
	now, err := c.group.Stats()
	if err != nil {
		return agent.Failed("update", err)
	}
	var wrong []string
	// The kernel counts memory in pages.
	if from.MemoryBytes != to.MemoryBytes && (held.MemoryBytes == nil || *held.MemoryBytes > to.MemoryBytes) {
		wrong = append(wrong, agent.ControlMemory)
	}
	// v1 only; elsewhere nil.
	if from.MemoryBytes != to.MemoryBytes && held.SocketBytes != nil && *held.SocketBytes > to.SocketBytes()/2 {
		wrong = append(wrong, agent.ControlSockets)
	}
	if from.Pids != to.Pids {
		if held.Pids == nil || *held.Pids != to.Pids {
			wrong = append(wrong, agent.ControlPids)
		} else if now.Pids != nil && *now.Pids > to.Pids {
			// The kernel takes such a limit and lets them live.
			return &agent.Error{Kind: agent.KindConflict, Step: "update " + agent.ControlPids,
				Message: fmt.Sprintf("%s has %d processes and threads, more than %d", c.name, *now.Pids, to.Pids),
				Hint:    "give more than it has, or stop it; `clove stats` shows it"}
		}
	}
	// The kernel keeps whole microseconds, so the quota may differ by rounding.
	if from.CPUs != to.CPUs && to.CPUs > 0 && (held.CPUs == nil || math.Abs(*held.CPUs-to.CPUs) > 2.0/cpuPeriod) {
		wrong = append(wrong, agent.ControlCPU)
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "update", Message: fmt.Sprintf("the kernel did not set %v", wrong),
			Hint: "nothing was changed; `clove doctor` shows what this host can enforce"}
	}
	return nil
}
