package agent

import "fmt"

// ValidateGiven validates the limits of an OCI container. Unlike in Validate, 0 means that
// a limit is not given, and the floors that leave room for clove-init do not apply.
func (l Limits) ValidateGiven() error {
	for _, size := range []struct {
		field string
		bytes int64
	}{{"limits.memory_bytes", l.MemoryBytes}, {"limits.memory_swap_bytes", l.MemorySwapBytes}, {"limits.disk_bytes", l.DiskBytes},
		{"limits.shm_bytes", l.ShmBytes}, {"limits.output_bytes", l.OutputBytes}} {
		if size.bytes == 0 {
			continue
		}
		if err := checkSize(size.field, size.bytes, 1); err != nil {
			return err
		}
	}
	if l.MemorySwapBytes != 0 {
		if err := checkSwap(l.MemorySwapBytes, l.MemoryBytes); err != nil {
			return err
		}
	}
	if l.Pids < 0 || l.Pids > PidsCeiling {
		return wrong("limits.pids", fmt.Sprintf("give a number from 1 to %d", PidsCeiling), "%d is not a limit of processes", l.Pids)
	}
	if err := checkCPUs(l.CPUs); err != nil {
		return err
	}
	if err := checkClock("limits.cpu_time_ns", l.CPUTime); err != nil {
		return err
	}
	return checkClock("limits.wall_clock_ns", l.WallClock)
}

// ValidateRules rejects too many rules and text that cannot be shown. The meaning of a
// target is checked by the parser of package egress.
func ValidateRules(rules []EgressRule) error {
	if len(rules) > rulesMost {
		return wrong("egress", fmt.Sprintf("use at most %d rules", rulesMost), "there are too many")
	}
	for _, rule := range rules {
		if rule.Target == "" {
			return wrong("egress.rules", "name what is allowed or denied", "a rule has no target")
		}
		if err := checkText("egress.rules", rule.Target+rule.Source, targetMost); err != nil {
			return err
		}
	}
	return nil
}
