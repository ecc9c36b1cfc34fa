// Package broker is root's side of the egress gate: it answers one clove-gate.
//
// The gate asks over a wire.Conn for names, connections, flows and entries. The
// broker decides with egress.Rules, resolves, remembers which answers it gave
// (pins), dials in the host's network and hands out connected sockets. Of each
// it keeps a duplicate: TCP_INFO on it is the true byte count, SOCK_DESTROY and
// shutdown(2) on it cut a connection that new rules forbid.
//
//	gate ── Lookup ──▶ rules.Resolve ─▶ resolver ─▶ rules.Answer ─▶ pins ─▶ message
//	     ── Open ────▶ rules.Connect ─▶ (verify: asks again) ─▶ dial, check again ─▶ socket
//	     ── Flow ────▶ rules.Connect ─▶ dial, Namespace.Flow ─▶ two sockets
//	     ── Enter ───▶ published? ────▶ Namespace.DialPort ───▶ socket
//
// Every request is taken for hostile: the gate parses what the agent writes and
// may have been taken over. What is out of form is answered by the end of the
// channel, and with it of the agent's network. What is in form can only choose
// among what the rules allow. The channel's end closes every socket.
//
// It refuses to read a byte that an agent wrote, to dial an address that was not
// checked at that moment, and to send a query for a name that is denied.
package broker
