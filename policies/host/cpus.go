package host

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
)

// ParseCPUs reads the list format of cpuset(7) into ascending numbers. CPUCeiling and
// listMost bound what it allocates.
func ParseCPUs(text string) ([]int, error) {
	const listMost = 512
	var cpus []int
	if len(text) > listMost {
		return nil, fmt.Errorf("a list of CPUs has at most %d bytes, not %d", listMost, len(text))
	}
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

// FormatCPUs is the inverse of ParseCPUs, in its shortest form.
func FormatCPUs(cpus []int) string {
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
