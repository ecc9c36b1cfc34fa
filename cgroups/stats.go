package cgroups

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Stats are the usage and events of a group since its creation, sub-cgroups included. nil
// means that this host does not supply the figure, never 0.
type Stats struct {
	CPU                 *time.Duration
	CPUUser             *time.Duration // CPUUser and CPUSystem add up to CPU
	CPUSystem           *time.Duration
	CPUThrottled        *time.Duration // summed over all CPUs
	CPUThrottledPeriods *int64

	MemoryBytes      *int64 // now, page cache included
	MemoryPeakBytes  *int64 // v2: since Linux 5.19
	MemoryHighEvents *int64 // throttled above memory.high; v2 only
	MemoryLimitOOMs  *int64 // times that the group's own limit had no more, also after reclaim; v2 only
	OOMKills         *int64
	OOMGroupKills    *int64 // v2 since Linux 5.17

	Pids          *int64 // now; threads count
	PidsPeak      *int64 // since Linux 6.6
	PidsMaxEvents *int64 // forks refused

	IOReadBytes  *int64 // from and to block devices
	IOWriteBytes *int64
}

// Stats reads all figures. A group that does not exist has none, which is no error.
func (g *Group) Stats() (Stats, error) {
	read := g.statsV2
	if g.onV1() {
		read = g.statsV1
	}
	s, err := read()
	if err != nil && !isGone(err) {
		return s, fmt.Errorf("cannot read usage: %w", err)
	}
	return s, nil
}

// CPUUse is CPU time and its two parts as the kernel counts them; see share.
type CPUUse struct {
	Total, User, System time.Duration
}

// Since returns s without the CPU time used before: what the launch used in the same cgroup
// is not the agent's. The parts are scaled again, so that they still add up to the total.
func (s Stats) Since(before CPUUse) Stats {
	if s.CPU == nil {
		return s
	}
	total := max(0, *s.CPU-before.Total)
	s.CPU = &total
	if s.CPUUser == nil {
		return s
	}
	// The parts before are raw samples and are scaled as those now are; each is clamped,
	// because two scaled samples can differ by more than the totals do.
	earlier, _ := share(before.Total, int64(before.User), int64(before.System))
	user := min(max(0, *s.CPUUser-*earlier), total)
	system := total - user
	s.CPUUser, s.CPUSystem = &user, &system
	return s
}

// onV1 reports whether the controllers are on v1: the v2 tree of a hybrid host has none.
func (g *Group) onV1() bool {
	_, hasV2 := g.paths[unified]
	return len(g.paths) > 1 || !hasV2
}

// CPUTime returns the CPU time that the group has used. It reads one file, so it may be
// called often. It wraps fs.ErrNotExist where the group does not exist.
func (g *Group) CPUTime() (time.Duration, error) {
	var f files
	var used *time.Duration
	if dir, ok := g.paths["cpuacct"]; ok {
		used = duration(f.number(dir, "cpuacct.usage"), time.Nanosecond)
	} else { // every v2 cgroup counts CPU time, without any controller
		used = duration(at(f.keys(g.paths[unified], "cpu.stat"), "usage_usec"), time.Microsecond)
	}
	if used == nil && f.err == nil {
		f.err = errors.New("no cgroup counts it")
		if dir, gone := g.gone(); gone {
			f.err = &os.PathError{Op: "read", Path: dir, Err: os.ErrNotExist}
		}
	}
	if f.err != nil {
		return 0, fmt.Errorf("cannot read the CPU time: %w", f.err)
	}
	return *used, nil
}

// gone returns a directory of the group that does not exist. Only then is an absent figure
// the end of the group, and not a kernel without it.
func (g *Group) gone() (dir string, gone bool) {
	for _, dir := range g.dirs {
		if !exists(dir, "cgroup.procs") {
			return dir, true
		}
	}
	return "", false
}

func duration(n *int64, unit time.Duration) *time.Duration {
	if n == nil {
		return nil
	}
	d := time.Duration(*n) * unit
	return &d
}
