package cgroups

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Limits are the limits of a group now in force. nil means no limit, or a controller that
// is absent here.
type Limits struct {
	MemoryBytes *int64
	SwapBytes   *int64 // memory and swap together on v1, swap alone on v2
	SocketBytes *int64 // what TCP and UDP sockets hold beside memory, on v1
	Pids        *int64
	CPUs        *float64 // CPU seconds per second
}

// Limits reads the limits in force. A group that does not exist has none.
func (g *Group) Limits() (Limits, error) {
	var f files
	var l Limits
	if g.onV1() {
		memory, cpu := g.paths["memory"], g.paths["cpu"]
		l.MemoryBytes = bounded64(f.number(memory, "memory.limit_in_bytes"))
		l.SwapBytes = bounded64(f.number(memory, "memory.memsw.limit_in_bytes"))
		l.SocketBytes = bounded64(f.number(memory, socketFile))
		l.Pids = f.number(g.paths["pids"], "pids.max")
		l.CPUs = quota(append(f.fields(cpu, "cpu.cfs_quota_us"), f.fields(cpu, "cpu.cfs_period_us")...))
	} else {
		dir := g.paths[unified]
		l.MemoryBytes = f.number(dir, "memory.max")
		l.SwapBytes = f.number(dir, "memory.swap.max")
		l.Pids = f.number(dir, "pids.max")
		l.CPUs = quota(f.fields(dir, "cpu.max"))
	}
	if f.err != nil {
		return Limits{}, fmt.Errorf("cannot read limits: %w", f.err)
	}
	return l, nil
}

// bounded64 drops v1's value for no limit: PAGE_COUNTER_MAX in bytes, which is above every
// machine's memory.
func bounded64(n *int64) *int64 {
	if n == nil || *n > math.MaxInt64/2 {
		return nil
	}
	return n
}

// quota computes CPUs from quota and period in microseconds. "max" (v2) and -1 (v1) mean no limit.
// cpu.max has both values in one file, v1 has a file for each; the order is the same.
func quota(fields []string) *float64 {
	if len(fields) != 2 {
		return nil
	}
	share, err := strconv.ParseFloat(fields[0], 64)
	period, perr := strconv.ParseFloat(fields[1], 64)
	if err != nil || perr != nil || share < 0 || period <= 0 {
		return nil
	}
	cpus := share / period
	return &cpus
}

// MemoryInUseError says that a group uses more memory than the new limit.
type MemoryInUseError struct{ Bytes int64 }

func (e *MemoryInUseError) Error() string { return fmt.Sprintf("%d bytes are in use", e.Bytes) }

// reclaim writes without os.File. EAGAIN means here that less was reclaimed than requested,
// but os.File would take it for "not ready" and wait for ever.
func reclaim(dir string, bytes int64) error {
	fd, err := unix.Open(filepath.Join(dir, "memory.reclaim"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, strconv.AppendInt(nil, bytes, 10))
	return err
}

// reclaimPatience bounds how long Shrink repeats its request.
const reclaimPatience = 2 * time.Second

// Shrink reclaims memory until the group uses at most limit bytes, or fails with a
// *MemoryInUseError. It has work to do on v2 only: there the kernel accepts a limit below
// the usage and then kills. The group must be frozen, otherwise the result is outdated at
// once. On v1 the kernel itself refuses such a limit.
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
			return fmt.Errorf("cannot read the memory in use: %w", f.err)
		case used == nil || *used <= limit:
			return nil
		}
		// memory.reclaim exists since Linux 5.19. EAGAIN means that less was
		// reclaimed than requested; the next round may suffice (cgroup-v2.rst).
		err := reclaim(dir, *used-limit)
		if err != nil && err != unix.EAGAIN && err != unix.EINTR && !isGone(err) {
			return fmt.Errorf("cannot reclaim memory: %w", err)
		}
		// Stop when a round freed nothing, or the loop would spin on memory that cannot be
		// reclaimed (no swap, locked pages). A kernel without memory.reclaim ends here too.
		if now := f.number(dir, "memory.current"); now == nil || *now >= *used || time.Now().After(deadline) {
			if now != nil && *now <= limit {
				return nil
			}
			return &MemoryInUseError{Bytes: *used}
		}
	}
}
