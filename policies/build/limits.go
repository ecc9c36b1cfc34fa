package build

import (
	"fmt"
	"strconv"
	"time"

	"clove.run/clove/agent"
)

// readLimits reads sizes and times, and then what has a rule of its own. Memory comes
// before swap, which is compared with it.
func (b *builder) readLimits() (err error) {
	limits := &b.spec.Limits
	for _, f := range []struct {
		name, text string
		floor      int64
		field      *int64
	}{
		{"memory", b.asked.Memory, agent.MemoryFloorBytes, &limits.MemoryBytes},
		{"output-limit", b.asked.Output, 1, &limits.OutputBytes},
		{"disk", b.asked.Disk, agent.DiskFloorBytes, &limits.DiskBytes},
		{"shm-size", b.asked.Shm, agent.SizeFloor, &limits.ShmBytes},
	} {
		if f.text == "" {
			continue
		}
		if *f.field, err = ParseSize(f.name, f.text, f.floor); err != nil {
			return err
		}
	}
	for _, read := range []func() error{b.readTimes, b.readStartTimeout, b.readSwap, b.readPids, b.readCPUs, b.readCPUSet} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// readTimes refuses 0 for clocks. In a spec it means no limit, but a user who writes
// --timeout 0 may mean the opposite. For the grace period 0 is a value: KILL at once.
func (b *builder) readTimes() (err error) {
	limits := &b.spec.Limits
	for _, f := range []struct {
		name, text string
		field      *time.Duration
	}{{"cpu-time", b.asked.CPUTime, &limits.CPUTime}, {"timeout", b.asked.Timeout, &limits.WallClock}} {
		if f.text == "" {
			continue
		}
		if *f.field, err = ParseClock(f.name, f.text); err != nil {
			return err
		}
		if *f.field == 0 {
			return invalid(f.name, "omit the flag for no limit", "0 leaves the agent no time")
		}
	}
	if text := b.asked.StopTimeout; text != "" {
		limits.StopGrace, err = ParseClock("stop-timeout", text)
	}
	return err
}

// readStartTimeout has a ceiling, because a start that makes no progress keeps one of
// cloved's start slots.
func (b *builder) readStartTimeout() (err error) {
	text := b.asked.StartTimeout
	if text == "" {
		return nil
	}
	if b.spec.StartTimeout, err = ParseClock("start-timeout", text); err != nil {
		return err
	}
	if d := b.spec.StartTimeout; d < agent.StartTimeoutFloor || d > agent.StartTimeoutCeiling {
		return invalid("start-timeout", fmt.Sprintf("give a time from %s to %s, or omit the flag", agent.StartTimeoutFloor, agent.StartTimeoutCeiling),
			"%q is not a valid time limit for a step of the start", text)
	}
	return nil
}

// readSwap follows docker: the value counts memory and swap together. Unlike there, swap is
// off unless it is asked for: docker would give as much swap as memory.
func (b *builder) readSwap() (err error) {
	limits := &b.spec.Limits
	limits.MemorySwapBytes = limits.MemoryBytes
	text := b.asked.MemorySwap
	switch text {
	case "":
		return nil
	case "-1":
		limits.MemorySwapBytes = -1
		return nil
	}
	limits.MemorySwapBytes, err = ParseSize("memory-swap", text, 0)
	if err == nil && limits.MemorySwapBytes < limits.MemoryBytes {
		return invalid("memory-swap", "it counts memory and swap together: at least "+size(limits.MemoryBytes),
			"%s is less than the memory limit", text)
	}
	return err
}

// readPids always sets a limit: without one, a fork bomb takes the host's process numbers.
func (b *builder) readPids() error {
	text := b.asked.Pids
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return invalid("pids-limit", "write a whole number such as 512", "%q is not a number of processes", text)
	case n <= 0:
		return invalid("pids-limit", "there is always a limit; write a large number", "%d is not a limit", n)
	case n < agent.PidsFloor:
		return invalid("pids-limit", "give at least "+strconv.Itoa(agent.PidsFloor), "%d is too few: the sandbox itself needs some to start", n)
	case n > agent.PidsCeiling:
		return invalid("pids-limit", "the kernel knows at most "+strconv.Itoa(agent.PidsCeiling), "%d is too many", n)
	}
	b.spec.Limits.Pids = n
	return nil
}
