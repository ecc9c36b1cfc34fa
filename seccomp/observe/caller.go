package observe

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// caller is what the kernel says of a thread. Ids are the host's.
type caller struct {
	thread     uint32
	uids, gids [4]uint32 // real, effective, saved, of files
	groups     []uint32
	held       uint64 // effective capabilities
}

// callerOf reads /proc; an error: the thread is gone.
func callerOf(thread uint32) (c caller, err error) {
	c.thread = thread
	text, err := os.ReadFile(procPath(thread, "status"))
	if err != nil {
		return c, err
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch fields := strings.Fields(value); key {
		case "Uid":
			fill(c.uids[:], fields)
		case "Gid":
			fill(c.gids[:], fields)
		case "Groups":
			c.groups = make([]uint32, len(fields))
			fill(c.groups, fields)
		case "CapEff":
			c.held, err = strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return c, err
}

func fill(ids []uint32, fields []string) {
	for i := range min(len(ids), len(fields)) {
		id, _ := strconv.ParseUint(fields[i], 10, 32)
		ids[i] = uint32(id)
	}
}

func (c caller) has(capability int) bool { return c.held&(1<<capability) != 0 }

func (c caller) inGroup(gid uint32) bool { return c.gids[3] == gid || slices.Contains(c.groups, gid) }

func procPath(thread uint32, name string) string { return fmt.Sprintf("/proc/%d/%s", thread, name) }

func number(n uint64) string { return strconv.FormatUint(n, 10) }
