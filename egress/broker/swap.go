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

// mayBeSwapped reports whether a connection could be to a host of the Swap's, and the name that its client shows is not known
// yet.
func (b *Broker) mayBeSwapped(asked egress.Connection) bool {
	return b.config.Swap != nil && !asked.Looked &&
		slices.ContainsFunc(asked.Pinned, func(name egress.Name) bool { return b.config.Swap.Takes(string(name), asked.Target.Port()) })
}

// throughSwap passes a connected socket to the Swap, if the connection is to one of its hosts. It returns what the gate relays to
// then, else nil.
func (b *Broker) throughSwap(kind Kind, to dialled) (*os.File, error) {
	if b.config.Swap == nil || kind != KindTCP || !b.config.Swap.Takes(string(to.asked.Shown), to.asked.Target.Port()) {
		return nil, nil
	}
	return b.config.Swap.Connect(string(to.asked.Shown), to.asked.Target.Port(), to.file)
}
