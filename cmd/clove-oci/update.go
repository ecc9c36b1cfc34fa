package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/docker/go-units"
	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/urfave/cli/v2"

	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

const (
	flagResources     = "resources"
	flagPidsLimit     = "pids-limit"
	flagBlkioWeight   = "blkio-weight"
	flagCpusetCpus    = "cpuset-cpus"
	flagCpusetMems    = "cpuset-mems"
	flagL3CacheSchema = "l3-cache-schema"
	flagMemBwSchema   = "mem-bw-schema"
)

// updateCommand changes the limits of a container while it runs. Docker and the
// kubelet's CPU manager use it; engines pass --resources, people the other flags.
func (p *program) updateCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: flagResources, Aliases: []string{"r"},
			Usage: "file with linux.resources, or - for standard input; then only Intel RDT's flags count besides"},
		&cli.IntFlag{Name: flagBlkioWeight, Usage: "weight of block devices, 10 to 1000"},
		&cli.StringFlag{Name: flagCpusetCpus, Usage: "CPUs to run on"},
		&cli.StringFlag{Name: flagCpusetMems, Usage: "memory nodes to use"},
		&cli.IntFlag{Name: flagPidsLimit, Usage: "number of processes"},
		&cli.StringFlag{Name: flagL3CacheSchema, Usage: "Intel RDT's schema of the L3 cache"},
		&cli.StringFlag{Name: flagMemBwSchema, Usage: "Intel RDT's schema of the memory's bandwidth"},
	}
	for _, n := range numbers {
		flags = append(flags, &cli.StringFlag{Name: n.flag, Usage: n.usage, Hidden: n.usage == ""})
	}
	return &cli.Command{
		Name: "update", Usage: "change the limits of a container", ArgsUsage: "ID", Flags: flags,
		Action: loading(1, func(c *cli.Context, found *container.Container) error {
			change, err := readChange(c)
			if err != nil {
				return err
			}
			state, err := found.State()
			if err != nil {
				return err
			}
			// The annotations as create saved them. Update calls Allow with the limits
			// that would result, before it writes any: a change beyond the annotations
			// is refused as a whole.
			rules, err := oci.For(state.Annotations, state.ID)
			if err != nil {
				return err
			}
			return found.Update(change, rules.Allow)
		}),
	}
}

// numbers are the flags with one number: how it is read, and which field gets it. Those
// without a usage are obsolete limits of kernel memory. Engines still pass them, so
// they are checked and ignored, as runc does.
var numbers = []struct {
	flag, usage string
	read        func(text string) (int64, error)
	into        func(r *specs.LinuxResources, value int64)
}{
	{"cpu-period", "microseconds of a CFS period; 0: the kernel's own", readNumber, func(r *specs.LinuxResources, v int64) { r.CPU.Period = unsigned(v) }},
	{"cpu-quota", "microseconds of CPU time in a period", readAnyNumber, func(r *specs.LinuxResources, v int64) { r.CPU.Quota = &v }},
	{"cpu-burst", "microseconds of unused CPU time that it may save up for a burst", readNumber, func(r *specs.LinuxResources, v int64) { r.CPU.Burst = unsigned(v) }},
	{"cpu-share", "weight of CPU time beside other containers", readNumber, func(r *specs.LinuxResources, v int64) { r.CPU.Shares = unsigned(v) }},
	{"cpu-rt-period", "microseconds of a realtime period; 0: the kernel's own", readNumber, func(r *specs.LinuxResources, v int64) { r.CPU.RealtimePeriod = unsigned(v) }},
	{"cpu-rt-runtime", "microseconds of realtime in a period", readAnyNumber, func(r *specs.LinuxResources, v int64) { r.CPU.RealtimeRuntime = &v }},
	{"cpu-idle", "1: run only when no other process wants the CPU (SCHED_IDLE)", readAnyNumber, func(r *specs.LinuxResources, v int64) { r.CPU.Idle = &v }},
	{"memory", "bytes, or a size such as 256m", readBytes, func(r *specs.LinuxResources, v int64) { r.Memory.Limit = &v }},
	{"memory-reservation", "soft limit in bytes, applied when the host is short of memory", readBytes, func(r *specs.LinuxResources, v int64) { r.Memory.Reservation = &v }},
	{"memory-swap", "bytes of memory and swap together; -1: any swap", readBytes, func(r *specs.LinuxResources, v int64) { r.Memory.Swap = &v }},
	{"kernel-memory", "", readBytes, func(*specs.LinuxResources, int64) {}},
	{"kernel-memory-tcp", "", readBytes, func(*specs.LinuxResources, int64) {}},
}

func unsigned(value int64) *uint64 {
	converted := uint64(value)
	return &converted
}

// readAnyNumber takes negative numbers: -1 means no limit for quotas.
func readAnyNumber(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }

// readNumber takes no sign. 63 bits, because the table carries all values as int64.
func readNumber(text string) (int64, error) {
	value, err := strconv.ParseUint(text, 10, 63)
	return int64(value), err
}

// readBytes reads docker's sizes, in powers of 1024.
func readBytes(text string) (int64, error) {
	if text == "-1" {
		return -1, nil // no limit
	}
	return units.RAMInBytes(text)
}

// readChange collects what the flags ask for. With --resources the file has all of it
// but Intel RDT's schemas, which the specification keeps in linux.intelRdt. Engines
// pass - and write the document to standard input.
func readChange(c *cli.Context) (container.Change, error) {
	change := container.Change{L3CacheSchema: c.String(flagL3CacheSchema), MemBwSchema: c.String(flagMemBwSchema)}
	r := &change.Resources
	if path := c.String(flagResources); path != "" {
		return change, readResources(path, r)
	}
	r.Memory, r.CPU, r.Pids, r.BlockIO = &specs.LinuxMemory{}, &specs.LinuxCPU{}, &specs.LinuxPids{}, &specs.LinuxBlockIO{}
	r.CPU.Cpus, r.CPU.Mems = c.String(flagCpusetCpus), c.String(flagCpusetMems)
	// IsSet, because 0 is a limit: the first process and no other.
	if c.IsSet(flagPidsLimit) {
		limit := c.Int64(flagPidsLimit)
		r.Pids.Limit = &limit
	}
	if weight := uint16(c.Int(flagBlkioWeight)); weight != 0 { // 0: not given; the least that the kernel takes is 10
		r.BlockIO.Weight = &weight
	}
	for _, n := range numbers {
		text := c.String(n.flag)
		if text == "" {
			continue
		}
		value, err := n.read(text)
		if err != nil {
			return change, fmt.Errorf("invalid value for %s: %w", n.flag, err)
		}
		n.into(r, value)
	}
	return change, nil
}

func readResources(path string, r *specs.LinuxResources) error {
	var from io.Reader = os.Stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		from = file
	}
	return json.NewDecoder(from).Decode(r)
}
