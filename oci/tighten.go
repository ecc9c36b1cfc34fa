package oci

import (
	"fmt"
	"math"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// Apply understands the annotations of a bundle, for the container with this id,
// and makes its config.json hold those that it can. The others are in Rules, for
// whoever holds the container from outside. What nobody holds it refuses, with an
// *agent.Error (KindUnenforceable; KindInvalid for what is misunderstood or wider
// than the engine's own), and then spec is not to be used.
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

// defaultPeriod is the kernel's CFS period in microseconds (sched-bwc.rst).
const defaultPeriod = 100_000

// tighten writes the limits where libcontainer reads the engine's own. One that
// is wider than the engine's is refused: whoever wrote it expects to get it.
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

// checkUnified refuses to be overruled: cgroup v2 files that the engine names
// one by one are written after everything else.
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
	// The engine's number counts memory and swap together: left as it is, what the
	// memory loses would become swap.
	if swap := resources.Memory.Swap; swap != nil && *swap > 0 && before != nil && *before > 0 {
		together := *swap - *before + r.Limits.MemoryBytes
		resources.Memory.Swap = &together
	}
	return nil
}

// tightenSwap counts memory and swap together, as config.json does.
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

func (r Rules) tightenPids(resources *specs.LinuxResources) error {
	if r.Limits.Pids == 0 {
		return nil
	}
	if resources.Pids == nil {
		resources.Pids = &specs.LinuxPids{}
	}
	// Of pids alone, zero is a limit: libcontainer makes it one process.
	if limit := resources.Pids.Limit; limit != nil && *limit == 0 {
		return wider(AnnotationPids, "the engine allows no process but the first", "")
	}
	return lower(AnnotationPids, &resources.Pids.Limit, r.Limits.Pids)
}

// lower sets a limit that may be absent. Zero and less mean no limit to libcontainer.
func lower(key string, limit **int64, to int64) error {
	if *limit != nil && **limit > 0 && **limit < to {
		return wider(key, fmt.Sprintf("%d is more than the engine's own limit of %d", to, **limit), "")
	}
	*limit = &to
	return nil
}

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

// quota is how much of a period the annotation's CPUs are.
func (r Rules) quota(period uint64) int64 { return int64(math.Round(r.Limits.CPUs * float64(period))) }

func wider(key, message, hint string) error {
	if hint == "" {
		hint = "annotations only ever take away: lower it, or raise the engine's"
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + key, Message: message, Hint: hint}
}
