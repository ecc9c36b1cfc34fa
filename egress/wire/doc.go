// Package wire is the typed channel between clove-gate, which reads what the
// agent writes, and the broker in clove, which decides and dials.
//
// It is a SOCK_SEQPACKET pair. Each message is one packet of JSON, of at most
// packet.MaxBytes, with the descriptors that belong to it. The gate sends requests,
// and the broker answers each with its number. The only message that the broker
// sends by itself is the Setup at the beginning.
//
//	clove ── Setup + listeners ─────────────────▶ clove-gate
//	      ◀───────────────────────────── Ready ──
//	      ◀──────────── Lookup | Open | Flow | Enter ── (many at once)
//	      ── Answer [+ 1 or 2 sockets] ─────────▶
//	      ◀──────────────────── Closed | Refused | Held ── (no answer)
//
// When either side ends, the network ends: the gate exits, and its listeners with
// it. The package refuses to judge messages: the broker checks every request.
package wire
