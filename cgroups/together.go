package cgroups

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// HostMemory is the memory of the whole host, in bytes.
type HostMemory struct {
	Total     int64
	Available int64 // that could be given without swapping, as the kernel estimates it
}

// Kept is what agents together never get: a sixteenth, for the kernel, clove and
// everything else on the host.
func (m HostMemory) Kept() int64 { return m.Total / 16 }

// ReadHostMemory reads /proc/meminfo, whose lines are "MemTotal:  24683092 kB".
func ReadHostMemory() (m HostMemory, err error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return m, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch kib, _ := strconv.ParseInt(fields[1], 10, 64); fields[0] {
		case "MemTotal:":
			m.Total = kib << 10
		case "MemAvailable:":
			m.Available = kib << 10
		}
	}
	if m.Total == 0 {
		return m, fmt.Errorf("/proc/meminfo has no MemTotal")
	}
	return m, nil
}

// memoryFiles are the names of the files of one memory controller.
type memoryFiles struct{ limit, use, cache string }

var (
	memoryV1 = memoryFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
	memoryV2 = memoryFiles{"memory.max", "memory.current", "inactive_file"}
)

// LimitTogether makes what Place needs, and limits the memory of all agents together: at
// their limit the kernel ends one of them, and looks for nothing outside. It never gives
// them what the host keeps (HostMemory.Kept); most 0 gives them the rest. If they use more
// already, the limit is what they use, because v2 would kill at once: a later call lowers
// it further. On v1 it holds for the agents below clove's own cgroup.
func (h *Host) LimitTogether(most int64) error {
	if err := h.makeParents(); err != nil {
		return err
	}
	return h.limitTogether(most, true)
}

// limitTogether leaves a limit that exists as it is, unless it is to be changed.
func (h *Host) limitTogether(most int64, change bool) error {
	dir, names := h.memoryParent()
	if dir == "" || !exists(dir, names.limit) {
		return nil // no memory controller, which Missing reports
	}
	var f files
	limit, used := bounded64(f.number(dir, names.limit)), f.number(dir, names.use)
	if f.err != nil {
		return fmt.Errorf("cannot read the memory of all agents: %w", f.err)
	}
	if limit != nil && !change {
		return nil
	}
	memory, err := ReadHostMemory()
	if err != nil {
		return err
	}
	bytes := memory.Total - memory.Kept()
	if most > 0 {
		bytes = min(bytes, most)
	}
	if used != nil {
		bytes = max(bytes, *used)
	}
	bytes -= bytes % int64(os.Getpagesize()) // as the kernel shows it
	if limit != nil && *limit == bytes {
		return nil
	}
	if err := write(dir, names.limit, strconv.FormatInt(bytes, 10)); err != nil {
		return fmt.Errorf("cannot limit the memory of all agents to %d bytes: %w", bytes, err)
	}
	return nil
}

// memoryParent is the cgroup of all agents that counts their memory; "": there is none.
func (h *Host) memoryParent() (string, memoryFiles) {
	switch {
	case !h.Has("memory"):
		return "", memoryFiles{}
	case h.mode == ModeV2:
		return h.parent(unified), memoryV2
	}
	return h.parent("memory"), memoryV1
}

// UseTogether returns the bytes that agents use, given the Placement.Paths of those that
// live: what their common parents count, without page cache that the kernel can drop at
// once. On v1 there is a parent for each cgroup in which a clove was started.
func UseTogether(agents []map[string]string) (total int64, err error) {
	var f files
	seen := map[string]bool{}
	for _, paths := range agents {
		dir, names := paths["memory"], memoryV1
		if dir == "" {
			dir, names = paths[unified], memoryV2
		}
		parent := agentsDir(dir)
		if dir == "" || seen[parent] {
			continue
		}
		seen[parent] = true
		if used := f.number(parent, names.use); used != nil {
			total += max(0, *used-f.keys(parent, "memory.stat")[names.cache])
		}
	}
	if f.err != nil {
		return 0, fmt.Errorf("cannot read the memory that agents use: %w", f.err)
	}
	return total, nil
}
