//go:build root

package integration

import (
	"clove.run/clove/integration/probe"
)

// reachName returns the probe's name for one attempt to reach an address.
func reachName(way, address, port string) string { return "reach " + address + " " + port + " " + way }

// reachOutside is the control: the same attempt on the host.
func (n *internet) reachOutside(program, way, address, port string) probe.Result {
	n.t.Helper()
	out, err := n.outside(program, "reach", address, port, way)
	if err != nil {
		n.t.Fatalf("control: %v", err)
	}
	return attacked(n.t, []byte(out))[reachName(way, address, port)]
}
