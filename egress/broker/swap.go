package broker

import (
	"os"
	"slices"

	"clove.run/clove/egress"
)

// Swap stands between the agent and the servers of some hosts; egress/swap implements it.
type Swap interface {
	// Takes reports whether connections to a host pass through it.
	Takes(name string, port uint16) bool
	// Connect takes a duplicate of a connected socket to the host, and returns what the gate is to relay to.
	Connect(name string, port uint16, server *os.File) (*os.File, error)
}

// swaps passes connections through a Swap, which may be nil.
type swaps struct{ Swap }

// mayBe reports whether a connection could be to a host of the Swap's, and the name that its client shows is not known yet.
func (s swaps) mayBe(asked egress.Connection) bool {
	return s.Swap != nil && !asked.Looked &&
		slices.ContainsFunc(asked.Pinned, func(name egress.Name) bool { return s.Takes(string(name), asked.Target.Port()) })
}

// pass passes a connected socket to the Swap, if the connection is to one of its hosts. It returns what the gate relays to
// then, else nil.
func (s swaps) pass(kind Kind, to dialled) (*os.File, error) {
	if s.Swap == nil || kind != KindTCP || !s.Takes(string(to.asked.Shown), to.asked.Target.Port()) {
		return nil, nil
	}
	return s.Connect(string(to.asked.Shown), to.asked.Target.Port(), to.file)
}
