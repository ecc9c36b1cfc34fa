package rootfs

import (
	"testing"

	"pgregory.net/rapid"
)

const testHostID = 0x70000000

// apply returns the id that id is mapped to.
func apply(extents []extent, id uint32) (uint32, bool) {
	for _, e := range extents {
		if id >= e.Disk && id-e.Disk < e.Size {
			return e.Shown + id - e.Disk, true
		}
	}
	return 0, false
}

func TestOwnerMapIsABijectionThatGivesTheAgentTheOwner(t *testing.T) {
	t.Parallel()
	// 65535 belongs to no user and may be replaced by the owner's id, so neither of the two is
	// 65535.
	owners := rapid.OneOf(rapid.Uint32Range(0, 2000), rapid.Uint32Range(0, idsPerAgent-2), rapid.Uint32Range(idsPerAgent, 1<<32-2))
	rapid.Check(t, func(t *rapid.T) {
		owner := owners.Draw(t, "owner")
		agent := rapid.OneOf(rapid.Uint32Range(0, 2000), rapid.Uint32Range(0, maxAgentID)).Draw(t, "agent")
		extents := swapped(testHostID, agent, owner)
		if shown, ok := apply(extents, owner); !ok || shown != testHostID+agent {
			t.Fatalf("owner %d shows as %d (%v), want the agent %d", owner, shown, ok, agent)
		}
		seen := make(map[uint32]uint32, idsPerAgent)
		total := uint32(0)
		for _, e := range extents {
			total += e.Size
			for k := range e.Size {
				if other, twice := seen[e.Shown+k]; twice {
					t.Fatalf("%d and %d both show as %d", other, e.Disk+k, e.Shown+k)
				}
				seen[e.Shown+k] = e.Disk + k
				if e.Shown+k < testHostID || e.Shown+k >= testHostID+idsPerAgent {
					t.Fatalf("%d shows as %d, which is not the agent's", e.Disk+k, e.Shown+k)
				}
			}
		}
		if total != idsPerAgent {
			t.Fatalf("%d ids mapped, want %d", total, idsPerAgent)
		}
		for id := range uint32(idsPerAgent - 1) {
			shown, ok := apply(extents, id)
			if !ok {
				t.Fatalf("host id %d is not mapped", id)
			}
			if id != owner && id != agent && shown != testHostID+id {
				t.Fatalf("host id %d shows as %d, want a plain shift", id, shown)
			}
		}
	})
}

func TestIDMapText(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]idMap{
		"ids 0:1879048192:65536": shiftMap(testHostID),
		"uid 0:1879049192:1,1:1879048193:999,1000:1879048192:1,1001:1879049193:64535 gid 0:1879048192:65536": ownerMap(testHostID, 1000, 100, 0, 100),
	} {
		if got := m.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
