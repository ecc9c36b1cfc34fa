package build

import (
	"fmt"
	"slices"
	"strconv"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// readCPUs refuses more CPUs than the host has, as docker does: such a limit would limit
// nothing. A cluster's node may have more than this host.
func (b *builder) readCPUs() error {
	text := b.asked.CPUs
	if text == "" {
		return nil
	}
	const hint = "write how many CPUs it may keep busy, for example 0.5 or 2"
	n, err := strconv.ParseFloat(text, 64)
	have := len(b.host.CPUs)
	switch {
	// n != n is NaN, which ParseFloat accepts as a word.
	case err != nil || n != n:
		return invalid("cpus", hint, "%q is not a number", text)
	case n < 0:
		return invalid("cpus", hint, "%s is negative", text)
	case n < agent.CPUsFloor:
		return invalid("cpus", "omit the flag for no limit, or give at least 0.01", "%s is too little to run on", text)
	case n > float64(have) && !b.image:
		return invalid("cpus", fmt.Sprintf("give at most %d, or omit the flag for no limit", have),
			"%s is more than this host has, which is %d", text, have)
	}
	b.spec.Limits.CPUs = n
	return nil
}

// readCPUSet checks each CPU by its number: online CPUs may have gaps.
func (b *builder) readCPUSet() error {
	text := b.asked.CPUSet
	if text == "" {
		return nil
	}
	cpus, err := host.ParseCPUs(text)
	if err != nil {
		return invalid("cpuset-cpus", "write numbers and ranges, for example 0-2,4", "%s", err.Error())
	}
	for _, cpu := range cpus {
		if !slices.Contains(b.host.CPUs, cpu) {
			return invalid("cpuset-cpus", "this host has "+host.FormatCPUs(b.host.CPUs), "there is no CPU %d here", cpu)
		}
	}
	b.spec.Limits.CPUSet = host.FormatCPUs(cpus)
	return nil
}
