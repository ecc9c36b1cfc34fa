// Package broker is the privileged side of the egress gate: it answers the requests
// of one clove-gate.
//
// The gate requests names, connections, flows and entries over a wire.Conn. The
// broker decides with egress.Rules, resolves, remembers the answers that it gave
// (pins), dials in the host's network, and hands out connected sockets. It keeps a
// duplicate of each socket. TCP_INFO on the duplicate gives the true byte counts,
// and SOCK_DESTROY or shutdown(2) cuts a connection that new rules forbid.
//
//	gate ── Lookup ──▶ rules.Resolve ─▶ resolver ─▶ rules.Answer ─▶ pins ─▶ message
//	     ── Open ────▶ rules.Connect ─▶ (verify: asks again) ─▶ dial, check again ─▶ socket
//	     ── Flow ────▶ rules.Connect ─▶ dial, Namespace.Flow ─▶ two sockets
//	     ── Enter ───▶ published? ────▶ Namespace.DialPort ───▶ socket
//
// It treats every request as hostile, because the gate parses what the agent writes
// and may have been taken over. A malformed request ends the channel, and with it
// the agent's network. A well-formed request can only choose among what the rules
// allow. The end of the channel closes every socket.
//
// It refuses to read bytes that an agent wrote, to dial an address without a check
// at that moment, and to send a query for a denied name.
package broker
