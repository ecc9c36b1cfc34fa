package settings

import (
	"fmt"
	"slices"
	"strconv"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// readCPUs refuses more CPUs than the host has, as docker does: such a limit would limit
// nothing. A cluster's node may have more than this host.
func readCPUs(r *Reader, flag, text string) (float64, error) {
	const hint = "write how many CPUs it may keep busy, for example 0.5 or 2"
	n, err := strconv.ParseFloat(text, 64)
	have := len(r.Host.CPUs)
	switch {
	// n != n is NaN, which ParseFloat accepts as "nan".
	case err != nil || n != n:
		return 0, Invalid(flag, hint, "%q is not a number", text)
	case n < 0:
		return 0, Invalid(flag, hint, "%s is negative", text)
	case n < agent.CPUsFloor:
		return 0, Invalid(flag, "omit the flag for no limit, or give at least 0.01", "%s is too little to run on", text)
	case n > float64(have) && !r.Image:
		return 0, Invalid(flag, fmt.Sprintf("give at most %d, or omit the flag for no limit", have),
			"%s is more than this host has, which is %d", text, have)
	}
	return n, nil
}

// readCPUSet checks each CPU by its number: online CPUs may have gaps.
func readCPUSet(r *Reader, text string) error {
	cpus, err := host.ParseCPUs(text)
	if err != nil {
		return Invalid(CPUSet, "write numbers and ranges, for example 0-2,4", "%s", err.Error())
	}
	for _, cpu := range cpus {
		if !slices.Contains(r.Host.CPUs, cpu) {
			return Invalid(CPUSet, "this host has "+host.FormatCPUs(r.Host.CPUs), "there is no CPU %d here", cpu)
		}
	}
	r.Spec.Limits.CPUSet = host.FormatCPUs(cpus)
	return nil
}

// widerCPUSet: no text stands for all CPUs.
func widerCPUSet(base, wide agent.Spec) []Difference {
	b, w := base.Limits.CPUSet, wide.Limits.CPUSet
	to := "CPUs " + w
	if w == "" {
		to = "all"
	}
	return more(b != "" && b != w && !cpusWithin(w, b), "CPUs "+b, to)
}

// cpusWithin compares two lists of CPUs; the empty one is all.
func cpusWithin(narrow, wide string) bool {
	inside, all := cpus(narrow), cpus(wide)
	return len(inside) > 0 && !slices.ContainsFunc(inside, func(cpu int) bool { return !slices.Contains(all, cpu) })
}

func cpus(list string) []int {
	numbers, err := host.ParseCPUs(list)
	if err != nil {
		return nil
	}
	return numbers
}
