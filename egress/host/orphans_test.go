package host

import (
	"strconv"
	"testing"

	"clove.run/clove/agent"
)

func TestWhoseIDIsAGates(t *testing.T) {
	t.Parallel()
	first := agent.Lease{}.GateID()
	last := first + agent.IDsPerAgent/2 - 1 // ids of guards' gates come after those of leases
	for line, want := range map[string]bool{
		id(first): true, id(last): true, id(first - 1): false, id(last + 1): false, id(agent.LastingID(1, 1)): false, "0\t0\t0\t0": false, "": false, "x": false,
	} {
		if isGateID(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}

func id(n uint32) string { return strconv.FormatUint(uint64(n), 10) + "\t0\t0\t0" }
