// Package egress decides by rules which targets in a network an agent may reach.
//
// It is the pure core of the egress gate. It parses the user's targets and rules
// into one canonical set, and decides from that set alone: may this name be
// resolved, may this address be an answer, may this connection be made, which name
// must the client show first. It has no sockets, no clock and no resolver; the
// packages around it do.
//
//	agent's namespace            clove-gate                    clove (root)
//	  connect() ─ tproxy ──▶ accept, peek ── wire.Open ──▶ broker: egress.Rules,
//	  query :53 ─ tproxy ──▶ parse query ─── wire.Lookup ▶ pins, resolver, dial
//	       ◀──── relay ◀──── splice ◀─────── descriptor ── of the outside socket
//
// Its packages:
//   - egress/wire is the typed channel between the two processes.
//   - egress/gate runs in clove-gate: it reads what the agent writes, and can
//     neither open a file nor make a socket.
//   - egress/broker runs in clove: it decides, resolves and dials, and reads no
//     byte that an agent wrote.
//   - egress/host starts both: clove-gate, and the broker in clove itself.
//   - egress/dnsmsg implements the DNS message format; egress/resolver queries the
//     host's name servers.
//
// A gate that was taken over can lie about the agent's destination and about the
// name that a client showed. The broker hands out only sockets that are connected
// to allowed targets, so such a gate can choose among those, and nothing more.
//
// Decision 13 (docs/decisions) says why parsing and deciding are two processes.
package egress
