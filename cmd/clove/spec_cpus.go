package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
)

// readCPUs refuses more than there is, as docker does: who asks for it is
// mistaken about the host.
func (r *request) readCPUs() error {
	text := r.flags.String(flagCPUs)
	if text == "" {
		return nil
	}
	const hint = "write how many CPUs it may keep busy, for example 0.5 or 2"
	n, err := strconv.ParseFloat(text, 64)
	have := len(r.host.CPUs)
	switch {
	case err != nil || n != n:
		return invalid(flagCPUs, hint, "%q is not a number", text)
	case n < 0:
		return invalid(flagCPUs, hint, "%s is negative", text)
	case n < agent.CPUsFloor:
		return invalid(flagCPUs, "leave the flag away for no limit, or give at least 0.01", "%s is too little to run on", text)
	case n > float64(have) && !r.image:
		return invalid(flagCPUs, fmt.Sprintf("give at most %d, or leave the flag away for no limit", have),
			"%s is more than this host has, which is %d", text, have)
	}
	r.spec.Limits.CPUs = n
	return nil
}

// readCPUSet checks each CPU by its number: online CPUs may have gaps.
func (r *request) readCPUSet() error {
	text := r.flags.String(flagCPUSet)
	if text == "" {
		return nil
	}
	cpus, err := parseCPUs(text)
	if err != nil {
		return invalid(flagCPUSet, "write numbers and ranges, for example 0-2,4", "%s", err.Error())
	}
	for _, cpu := range cpus {
		if !slices.Contains(r.host.CPUs, cpu) {
			return invalid(flagCPUSet, "this host has "+formatCPUs(r.host.CPUs), "there is no CPU %d here", cpu)
		}
	}
	r.spec.Limits.CPUSet = formatCPUs(cpus)
	return nil
}

// parseCPUs reads the list format of cpuset(7) into ascending numbers. CPUCeiling bounds
// what a range can make it allocate.
func parseCPUs(text string) ([]int, error) {
	var cpus []int
	for _, part := range strings.Split(text, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, err := strconv.ParseUint(low, 10, 32)
		last, herr := strconv.ParseUint(high, 10, 32)
		if err != nil || herr != nil || last < first || last >= agent.CPUCeiling {
			return nil, fmt.Errorf("%q is not a CPU or a range of CPUs", part)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, int(cpu))
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// formatCPUs is the inverse of parseCPUs, in its shortest form.
func formatCPUs(cpus []int) string {
	var parts []string
	for i := 0; i < len(cpus); {
		end := i
		for end+1 < len(cpus) && cpus[end+1] == cpus[end]+1 {
			end++
		}
		if end > i {
			parts = append(parts, fmt.Sprintf("%d-%d", cpus[i], cpus[end]))
		} else {
			parts = append(parts, strconv.Itoa(cpus[i]))
		}
		i = end + 1
	}
	return strings.Join(parts, ",")
}
