// Package wire is the typed channel between clove-gate, which reads what the
// agent writes, and the broker in clove, which decides and dials.
//
// One SOCK_SEQPACKET pair: each message is one packet of JSON of at most
// MaxMessageBytes, with the descriptors that belong to it. The gate asks, the
// broker answers with the same number; the broker says nothing unasked but the
// Setup at the beginning.
//
//	clove ── Setup + listeners ─────────────────▶ clove-gate
//	      ◀───────────────────────────── Ready ──
//	      ◀──────────── Lookup | Open | Flow | Enter ── (many at once)
//	      ── Answer [+ 1 or 2 sockets] ─────────▶
//	      ◀──────────────────── Closed | Refused ── (no answer)
//
// The end of either side is the end of the network: the gate exits, and with
// it go the listeners.
package wire
