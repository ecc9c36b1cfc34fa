// Package gate is the work of clove-gate after it has dropped all privileges: it
// accepts the agent's connections and datagrams, reads as much of them as a decision
// needs, asks the broker, and relays.
//
//	accept ─▶ limits ─▶ Open ─┬─ allowed ─────────────────────▶ relay
//	                          ├─ verify ─▶ first bytes ─▶ Open ─▶ first bytes, relay
//	                          └─ denied ─▶ 403 on port 80, else RST
//
// Every socket comes from the broker: the listeners with the Setup, the others with
// its answers. The memory that the gate holds for an agent is bounded by count (connections,
// requests, queries), by size (16 KiB of first bytes, 64 KiB of a datagram, nothing
// of a relayed stream, whose bytes stay in kernel pipes), and by time (each wait for
// the agent has a limit, except in a relay).
//
// crypto/tls parses TLS, and net/http HTTP. If two parsers of the same bytes could
// find two names, the gate refuses the connection.
//
// DNS sockets for datagrams must be bound to port 53, and be transparent. An answer leaves through the socket that received
// the query: IP_PKTINFO sets its source address, and its port is the socket's.
// Only these sockets are used with a destination. Serve passes their descriptors to
// its caller, which forbids destinations on all others by a seccomp filter, so a
// connected socket in the host's network can send to its peer only.
//
// It refuses to dial, and the broker repeats every decision that it makes.
package gate
