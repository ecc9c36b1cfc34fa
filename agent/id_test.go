package agent

import (
	"strings"
	"testing"
)

func TestNewIDsAreValidAndDiffer(t *testing.T) {
	t.Parallel()
	seen := map[ID]bool{}
	for range 1000 {
		id := NewID()
		if !id.Valid() || seen[id] {
			t.Fatalf("%q is invalid or came twice", id)
		}
		seen[id] = true
	}
	for _, bad := range []ID{"", "0123456789abcde", "0123456789ABCDEF", "0123456789abcdeg", "../../../../etc1"} {
		if bad.Valid() {
			t.Errorf("%q is taken for an id", bad)
		}
	}
}

func TestValidateName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "agent-1", "A_b.c", strings.Repeat("x", 63)} {
		if err := ValidateName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "-a", ".a", "a/b", "a b", "a\n", "a\x00", "ä", strings.Repeat("x", 64)} {
		if err := ValidateName(bad); KindOf(err) != KindInvalid {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestLeasedIDsAreApartAndBelowTheEnd(t *testing.T) {
	t.Parallel()
	first, second, last := Lease{IDRange: 0}, Lease{IDRange: 1}, Lease{IDRange: IDRanges - 1}
	if first.HostID() != FirstHostID || second.HostID()-first.HostID() != IDsPerAgent {
		t.Errorf("ranges begin at %#x and %#x", first.HostID(), second.HostID())
	}
	if first.GateID() != last.HostID()+IDsPerAgent || second.GateID()-first.GateID() != 1 {
		t.Errorf("the gates' ids begin at %#x and %#x, the last range at %#x", first.GateID(), second.GateID(), last.HostID())
	}
	// systemd reserves ids from 0x7FFE0000 on for other purposes.
	if end := uint64(last.HostID()) + 2*IDsPerAgent; end != 0x7FFE0000 || last.GateID() >= 0x7FFE0000 {
		t.Errorf("the gates' range ends at %#x, its last id is %#x", end, last.GateID())
	}
	if InitUID <= MaxUser || InitUID >= IDsPerAgent {
		t.Error("clove-init's id is an agent's, or outside of the range")
	}
}
