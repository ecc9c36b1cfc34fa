// Package egress decides what an agent may reach.
//
// It is the pure core of the egress gate: targets and rules as the user wrote
// them become one canonical set, and every question (may this name be resolved,
// may this address be an answer, may this connection be made, which name must it
// show first) is answered from that set alone. No sockets, no clock, no
// resolver: those stand around it.
//
//		agent's namespace            clove-gate                    clove (root)
//		  connect() ─ tproxy ──▶ accept, peek ── wire.Open ──▶ broker: egress.Rules,
//		  query :53 ─ tproxy ──▶ parse query ─── wire.Lookup ▶ pins, resolver, dial
//		       ◀──── relay ◀──── splice ◀─────── descriptor ── of the outside socket
//
//	  - egress/wire is the typed channel between the two processes.
//	  - egress/gate runs in clove-gate: it reads what the agent writes, and can
//	    neither open a file nor make a socket.
//	  - egress/broker runs in clove: it decides, resolves and dials, and reads no
//	    byte that an agent wrote.
//	  - egress/host starts both: clove-gate, and the broker in clove itself.
//	  - egress/dnsmsg knows the DNS message format; egress/resolver asks the
//	    host's name servers.
//
// A gate that was taken over can lie about which address the agent wanted and
// which name it showed. The broker only ever hands out sockets that are
// connected to what the rules allow, so the lie is worth the choice among them
// and nothing more.
package egress
