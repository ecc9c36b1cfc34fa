package oci

import (
	"fmt"
	"math"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// Apply writes the limits that annotations ask for into a bundle's config, for the
// container with this id. It returns all rules, because the monitor and the guard enforce
// those that config.json cannot hold. The error is an *agent.Error for a rule that nothing
// would enforce (KindUnenforceable), and for one that is wrong or wider than the engine's
// own (KindInvalid); spec must not be used then.
func Apply(spec *specs.Spec, id string) (Rules, error) {
	rules, err := For(spec.Annotations, id)
	if err != nil {
		return Rules{}, err
	}
	if err := rules.tightenNetwork(spec); err != nil {
		return Rules{}, err
	}
	return rules, rules.tighten(spec)
}

// defaultPeriod is the kernel's CFS period in microseconds (sched-bwc.rst), for which a
// quota is computed if the engine sets none.
const defaultPeriod = 100_000

// tighten writes the limits to where libcontainer reads the engine's own. A limit that is
// wider than the engine's is refused and not ignored: its author expects to get what it
// says.
func (r Rules) tighten(spec *specs.Spec) error {
	if r.Limits.MemoryBytes == 0 && r.Limits.MemorySwapBytes == 0 && r.Limits.Pids == 0 && r.Limits.CPUs == 0 {
		return nil
	}
	if spec.Linux == nil {
		spec.Linux = &specs.Linux{}
	}
	if spec.Linux.Resources == nil {
		spec.Linux.Resources = &specs.LinuxResources{}
	}
	for _, tighten := range []func(*specs.LinuxResources) error{r.checkUnified, r.tightenMemory, r.tightenSwap, r.tightenPids, r.tightenCPU} {
		if err := tighten(spec.Linux.Resources); err != nil {
			return err
		}
	}
	return nil
}

// checkUnified refuses limits that the engine also sets through linux.resources.unified:
// libcontainer writes those cgroup v2 files last, so the engine's value would win.
func (r Rules) checkUnified(resources *specs.LinuxResources) error {
	for _, asked := range []struct {
		key, file string
		does      bool
	}{
		{AnnotationMemory, "memory.max", r.Limits.MemoryBytes != 0},
		{AnnotationMemorySwap, "memory.swap.max", r.Limits.MemorySwapBytes != 0},
		{AnnotationPids, "pids.max", r.Limits.Pids != 0},
		{AnnotationCPUs, "cpu.max", r.Limits.CPUs != 0},
	} {
		if _, set := resources.Unified[asked.file]; set && asked.does {
			return wider(asked.key, "the engine writes "+asked.file+" itself, by linux.resources.unified", "use one of the two")
		}
	}
	return nil
}

// tightenMemory also lowers the engine's limit of memory and swap together, by as much as
// the memory loses.
func (r Rules) tightenMemory(resources *specs.LinuxResources) error {
	if r.Limits.MemoryBytes == 0 {
		return nil
	}
	if resources.Memory == nil {
		resources.Memory = &specs.LinuxMemory{}
	}
	before := resources.Memory.Limit
	if err := lower(AnnotationMemory, &resources.Memory.Limit, r.Limits.MemoryBytes); err != nil {
		return err
	}
	// The engine's value counts memory and swap together. Left as it is, the container
	// could use as swap what it lost as memory.
	if swap := resources.Memory.Swap; swap != nil && *swap > 0 && before != nil && *before > 0 {
		together := *swap - *before + r.Limits.MemoryBytes
		resources.Memory.Swap = &together
	}
	return nil
}

// tightenSwap counts memory and swap together, as config.json and Docker do. It comes after
// tightenMemory, whose result it compares with.
func (r Rules) tightenSwap(resources *specs.LinuxResources) error {
	if r.Limits.MemorySwapBytes == 0 {
		return nil
	}
	if resources.Memory == nil || resources.Memory.Limit == nil || *resources.Memory.Limit <= 0 {
		return wider(AnnotationMemorySwap, "it counts memory and swap together, and there is no limit of memory", "add "+AnnotationMemory)
	}
	if r.Limits.MemorySwapBytes < *resources.Memory.Limit {
		return wider(AnnotationMemorySwap, "it counts memory and swap together, and is less than the memory alone", "give at least "+AnnotationMemory)
	}
	return lower(AnnotationMemorySwap, &resources.Memory.Swap, r.Limits.MemorySwapBytes)
}

// tightenPids counts processes and threads, as the pids controller does.
func (r Rules) tightenPids(resources *specs.LinuxResources) error {
	if r.Limits.Pids == 0 {
		return nil
	}
	if resources.Pids == nil {
		resources.Pids = &specs.LinuxPids{}
	}
	// For pids alone 0 is a limit: libcontainer makes it one process. Any annotation would
	// be wider.
	if limit := resources.Pids.Limit; limit != nil && *limit == 0 {
		return wider(AnnotationPids, "the engine allows no process but the first", "")
	}
	return lower(AnnotationPids, &resources.Pids.Limit, r.Limits.Pids)
}

// lower sets *limit, which may be absent, to at most to. libcontainer takes zero and less
// for no limit.
func lower(key string, limit **int64, to int64) error {
	if *limit != nil && **limit > 0 && **limit < to {
		return wider(key, fmt.Sprintf("%d is more than the engine's own limit of %d", to, **limit), "")
	}
	*limit = &to
	return nil
}

// tightenCPU writes quota and period together: a quota means nothing without the period
// that it was computed for.
func (r Rules) tightenCPU(resources *specs.LinuxResources) error {
	if r.Limits.CPUs == 0 {
		return nil
	}
	if resources.CPU == nil {
		resources.CPU = &specs.LinuxCPU{}
	}
	period := uint64(defaultPeriod)
	if p := resources.CPU.Period; p != nil && *p > 0 {
		period = *p
	}
	quota := r.quota(period)
	if err := lower(AnnotationCPUs, &resources.CPU.Quota, quota); err != nil {
		return wider(AnnotationCPUs, fmt.Sprintf("%g CPUs are more than the engine's own limit", r.Limits.CPUs), "")
	}
	resources.CPU.Period = &period
	return nil
}

// quota is the CPU time in microseconds that the annotation gives in each period.
func (r Rules) quota(period uint64) int64 { return int64(math.Round(r.Limits.CPUs * float64(period))) }

// wider is the error for an annotation that the engine's config contradicts.
func wider(key, message, hint string) error {
	if hint == "" {
		hint = "an annotation can only lower a limit: lower it, or raise the engine's"
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + key, Message: message, Hint: hint}
}
