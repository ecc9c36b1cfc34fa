package rootfs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// extent maps Size consecutive ids from Disk (in the host's files) to Shown (host ids of
// the sandbox, which the mount shows).
type extent struct {
	Disk, Shown, Size uint32
}

// idMap is the map of an id-mapped mount.
type idMap struct {
	UID, GID []extent
}

// shiftMap shows host id k as the sandbox's id k.
func shiftMap(base uint32) idMap {
	all := []extent{{0, base, idsPerAgent}}
	return idMap{UID: all, GID: all}
}

// ownerMap is a shiftMap in which the files of owner:group belong to the agent.
func ownerMap(base, uid, gid, owner, group uint32) idMap {
	return idMap{UID: swapped(base, uid, owner), GID: swapped(base, gid, group)}
}

// swapped maps owner to base+agent and shifts all others. The host's own id of the agent's
// number must move. It takes owner's place, or if owner is outside of the range, that of
// 65535, which is no user's: it is (uid_t)-1 of 16-bit system calls.
func swapped(base, agent, owner uint32) []extent {
	if owner == agent {
		return []extent{{0, base, idsPerAgent}}
	}
	displaced := owner
	if owner >= idsPerAgent {
		displaced = idsPerAgent - 1
	}
	low, high := min(agent, displaced), max(agent, displaced)
	extents := []extent{{owner, base + agent, 1}, {agent, base + displaced, 1}}
	// The three stretches between and around the two ids that were swapped keep their
	// numbers.
	for _, run := range []struct{ from, end uint32 }{{0, low}, {low + 1, high}, {high + 1, idsPerAgent}} {
		if run.from < run.end {
			extents = append(extents, extent{run.from, base + run.from, run.end - run.from})
		}
	}
	slices.SortFunc(extents, func(a, b extent) int { return cmp.Compare(a.Disk, b.Disk) })
	return extents
}

func (m idMap) String() string {
	text := "uid " + extentsText(m.UID)
	if slices.Equal(m.UID, m.GID) {
		return "ids " + extentsText(m.UID)
	}
	return text + " gid " + extentsText(m.GID)
}

func extentsText(extents []extent) string {
	parts := make([]string, len(extents))
	for i, e := range extents {
		parts[i] = fmt.Sprintf("%d:%d:%d", e.Disk, e.Shown, e.Size)
	}
	return strings.Join(parts, ",")
}
