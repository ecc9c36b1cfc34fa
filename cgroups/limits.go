package cgroups

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are what the kernel holds a group to now. nil means no limit, or no
// controller that could tell.
type Limits struct {
	MemoryBytes *int64
	SwapBytes   *int64 // memory and swap together on v1, swap alone on v2
	SocketBytes *int64 // what TCP and UDP sockets hold beside memory, on v1
	Pids        *int64
	CPUs        *float64 // CPU seconds per second
}

// Limits reads the limits in force. A group that is gone has none.
func (g *Group) Limits() (Limits, error) {
	var f files
	var l Limits
	if g.onV1() {
		memory, cpu := g.paths["memory"], g.paths["cpu"]
		l.MemoryBytes = bounded64(f.number(memory, "memory.limit_in_bytes"))
		l.SwapBytes = bounded64(f.number(memory, "memory.memsw.limit_in_bytes"))
		l.SocketBytes = bounded64(f.number(memory, socketFile))
		l.Pids = f.number(g.paths["pids"], "pids.max")
		l.CPUs = quota(append(f.words(cpu, "cpu.cfs_quota_us"), f.words(cpu, "cpu.cfs_period_us")...))
	} else {
		dir := g.paths[unified]
		l.MemoryBytes = f.number(dir, "memory.max")
		l.SwapBytes = f.number(dir, "memory.swap.max")
		l.Pids = f.number(dir, "pids.max")
		l.CPUs = quota(f.words(dir, "cpu.max"))
	}
	if f.err != nil {
		return Limits{}, fmt.Errorf("cannot read limits: %w", f.err)
	}
	return l, nil
}

// bounded64 drops v1's word for no limit: the largest number of pages that a
// counter holds (PAGE_COUNTER_MAX), which no machine has.
func bounded64(n *int64) *int64 {
	if n == nil || *n > math.MaxInt64/2 {
		return nil
	}
	return n
}

// quota reads quota and period in microseconds; "max" (v2) and -1 (v1) are no limit.
func quota(words []string) *float64 {
	if len(words) != 2 {
		return nil
	}
	share, err := strconv.ParseFloat(words[0], 64)
	period, perr := strconv.ParseFloat(words[1], 64)
	if err != nil || perr != nil || share < 0 || period <= 0 {
		return nil
	}
	cpus := share / period
	return &cpus
}

// MemoryInUseError says that a group holds more than it shall be allowed.
type MemoryInUseError struct{ Bytes int64 }

func (e *MemoryInUseError) Error() string { return fmt.Sprintf("%d bytes are in use", e.Bytes) }

// reclaim writes without os.File, which takes EAGAIN for "wait until it can be
// written", and waits for ever.
func reclaim(dir string, bytes int64) error {
	fd, err := unix.Open(filepath.Join(dir, "memory.reclaim"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, strconv.AppendInt(nil, bytes, 10))
	return err
}

// reclaimPatience bounds how often the kernel is asked for what is left.
const reclaimPatience = 2 * time.Second

// Shrink makes a group that shall have at most limit bytes of memory give back
// what it can, or fails with a *MemoryInUseError. On v2, where a limit below
// the usage makes the kernel kill, the group must be frozen, or the answer is
// old when it comes; on v1 the kernel itself refuses such a limit, and Shrink
// has nothing to do.
func (g *Group) Shrink(limit int64) error {
	if g.onV1() {
		return nil
	}
	dir := g.paths[unified]
	for deadline := time.Now().Add(reclaimPatience); ; {
		var f files
		used := f.number(dir, "memory.current")
		switch {
		case f.err != nil:
			return fmt.Errorf("cannot tell the memory in use: %w", f.err)
		case used == nil || *used <= limit:
			return nil
		}
		// Since Linux 5.19; EAGAIN is less than asked for, which may be enough in
		// the next round (cgroup-v2.rst).
		err := reclaim(dir, *used-limit)
		if err != nil && err != unix.EAGAIN && err != unix.EINTR && !isGone(err) {
			return fmt.Errorf("cannot reclaim memory: %w", err)
		}
		if now := f.number(dir, "memory.current"); now == nil || *now >= *used || time.Now().After(deadline) {
			if now != nil && *now <= limit {
				return nil
			}
			return &MemoryInUseError{Bytes: *used}
		}
	}
}
