package main

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"clove.run/clove/agent"
)

// sizeFlags are the limits that are numbers of bytes.
var sizeFlags = []struct {
	flag  string
	floor int64
	field func(*agent.Limits) *int64
}{
	{flagMemory, agent.MemoryFloorBytes, func(l *agent.Limits) *int64 { return &l.MemoryBytes }},
	{flagOutput, 1, func(l *agent.Limits) *int64 { return &l.OutputBytes }},
	{flagDisk, agent.DiskFloorBytes, func(l *agent.Limits) *int64 { return &l.DiskBytes }},
	{flagShm, agent.SizeFloor, func(l *agent.Limits) *int64 { return &l.ShmBytes }},
}

// clockFlags are the limits that are times.
var clockFlags = []struct {
	flag  string
	field func(*agent.Limits) *time.Duration
}{
	{flagCPUTime, func(l *agent.Limits) *time.Duration { return &l.CPUTime }},
	{flagTimeout, func(l *agent.Limits) *time.Duration { return &l.WallClock }},
}

// readLimits reads the tables above and what has a rule of its own.
func (r *request) readLimits() (err error) {
	limits := &r.spec.Limits
	for _, f := range sizeFlags {
		if text := r.flags.String(f.flag); text != "" {
			if *f.field(limits), err = parseSize(f.flag, text, f.floor); err != nil {
				return err
			}
		}
	}
	for _, f := range clockFlags {
		if text := r.flags.String(f.flag); text != "" {
			if *f.field(limits), err = parseClock(f.flag, text); err != nil {
				return err
			}
			if *f.field(limits) == 0 {
				return invalid(f.flag, "leave the flag away for no limit", "0 leaves the agent no time")
			}
		}
	}
	if text := r.flags.String(flagStopTimeout); text != "" {
		if limits.StopGrace, err = parseClock(flagStopTimeout, text); err != nil {
			return err
		}
	}
	if text := r.flags.String(flagStartTimeout); text != "" {
		if r.spec.StartTimeout, err = parseClock(flagStartTimeout, text); err != nil {
			return err
		}
		if d := r.spec.StartTimeout; d < agent.StartTimeoutFloor || d > agent.StartTimeoutCeiling {
			return invalid(flagStartTimeout, fmt.Sprintf("give a time from %s to %s, or leave the flag away", agent.StartTimeoutFloor, agent.StartTimeoutCeiling),
				"%q is no time for a step of the start", text)
		}
	}
	for _, read := range []func() error{r.readSwap, r.readPids, r.readCPUs, r.readCPUSet} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// readSwap follows docker: the value counts memory and swap together. Unlike
// there, swap is off unless it is asked for.
func (r *request) readSwap() (err error) {
	limits := &r.spec.Limits
	limits.MemorySwapBytes = limits.MemoryBytes
	text := r.flags.String(flagMemorySwap)
	switch text {
	case "":
		return nil
	case "-1":
		limits.MemorySwapBytes = -1
		return nil
	}
	limits.MemorySwapBytes, err = parseSize(flagMemorySwap, text, 0)
	if err == nil && limits.MemorySwapBytes < limits.MemoryBytes {
		return invalid(flagMemorySwap, "it counts memory and swap together: at least "+size(limits.MemoryBytes),
			"%s is less than the memory limit", text)
	}
	return err
}

// readPids always sets a limit: without one, one fork bomb is the host's.
func (r *request) readPids() error {
	text := r.flags.String(flagPids)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return invalid(flagPids, "write a whole number such as 512", "%q is not a number of processes", text)
	case n <= 0:
		return invalid(flagPids, "there is always a limit; write a large number", "%d is not a limit", n)
	case n < agent.PidsFloor:
		return invalid(flagPids, "give at least "+strconv.Itoa(agent.PidsFloor), "%d is too few: the sandbox itself needs some to start", n)
	case n > agent.PidsCeiling:
		return invalid(flagPids, "the kernel knows at most "+strconv.Itoa(agent.PidsCeiling), "%d is too many", n)
	}
	r.spec.Limits.Pids = n
	return nil
}

// parseSize reads a number of bytes of at least floor.
func parseSize(flag, text string, floor int64) (int64, error) {
	n, err := agent.ParseSize(text)
	if err != nil {
		f := agent.FailureOf(err)
		return 0, invalid(flag, f.Hint, "%s", f.Message)
	}
	if n < floor {
		return 0, invalid(flag, "give at least "+size(floor), "%s is too small, the least is %s", text, size(floor))
	}
	return n, nil
}

// parseClock reads Go's durations and plain seconds.
func parseClock(flag, text string) (time.Duration, error) {
	const hint = "write seconds or a duration, for example 90, 1.5s, 10m or 2h30m"
	d, err := time.ParseDuration(text)
	if err != nil {
		seconds, serr := strconv.ParseFloat(text, 64)
		if serr != nil || math.IsNaN(seconds) {
			return 0, invalid(flag, hint, "%q is not a duration", text)
		}
		d = time.Duration(max(-1, min(seconds, agent.ClockCeiling.Seconds()+1)) * float64(time.Second))
	}
	switch {
	case d < 0:
		return 0, invalid(flag, hint, "%q is negative", text)
	case d > agent.ClockCeiling:
		return 0, invalid(flag, "leave the flag away for no limit", "%q is more than a hundred years", text)
	}
	return d, nil
}
