package oci

import (
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// Allow refuses an engine's update of a running container that would exceed the
// annotations. after has all limits that would hold after the update, with Memory, CPU and
// Pids not nil. Within the annotations an engine may lower limits and raise them again.
func (r Rules) Allow(after *specs.LinuxResources) error {
	for _, check := range []func(*specs.LinuxResources) error{r.checkUnified, r.allowMemory, r.allowSwap, r.allowPids, r.allowCPU} {
		if err := check(after); err != nil {
			return err
		}
	}
	return nil
}

func (r Rules) allowMemory(after *specs.LinuxResources) error {
	return within(AnnotationMemory, after.Memory.Limit, r.Limits.MemoryBytes)
}

// allowSwap compares memory and swap together, as the annotation counts them.
func (r Rules) allowSwap(after *specs.LinuxResources) error {
	return within(AnnotationMemorySwap, after.Memory.Swap, r.Limits.MemorySwapBytes)
}

// allowPids accepts 0, which is one process and so within any limit.
func (r Rules) allowPids(after *specs.LinuxResources) error {
	if limit := after.Pids.Limit; limit != nil && *limit == 0 {
		return nil // the first process only
	}
	return within(AnnotationPids, after.Pids.Limit, r.Limits.Pids)
}

// allowCPU compares quotas of the period that would hold then, because an update may change
// the period alone.
func (r Rules) allowCPU(after *specs.LinuxResources) error {
	if r.Limits.CPUs == 0 {
		return nil
	}
	period := uint64(defaultPeriod)
	if p := after.CPU.Period; p != nil && *p > 0 {
		period = *p
	}
	quota := r.quota(period)
	if within(AnnotationCPUs, after.CPU.Quota, quota) != nil {
		return beyond(AnnotationCPUs, fmt.Sprintf("more than its %g CPUs", r.Limits.CPUs))
	}
	return nil
}

// within requires a limit of at most most; zero and less are no limit. A most of 0 means
// that no annotation was given.
func within(key string, limit *int64, most int64) error {
	switch {
	case most == 0:
		return nil
	case limit == nil || *limit <= 0:
		return beyond(key, fmt.Sprintf("no limit instead of its %d", most))
	case *limit > most:
		return beyond(key, fmt.Sprintf("%d is more than its %d", *limit, most))
	}
	return nil
}

// beyond is the error for an update that an annotation forbids.
func beyond(key, message string) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + key, Message: "the update would exceed it: " + message,
		Hint: "annotations apply for the container's whole life: stay below them, or create it again"}
}
