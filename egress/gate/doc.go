// Package gate is all that clove-gate does once it has no privilege left: it
// accepts what the agent sends, reads as much of it as a decision needs, asks
// the broker, and relays.
//
//	accept ─▶ limits ─▶ Open ─┬─ allowed ─────────────────────▶ relay
//	                          ├─ verify ─▶ first bytes ─▶ Open ─▶ first bytes, relay
//	                          └─ denied ─▶ 403 on port 80, else RST
//
// Every socket comes from the broker: the listeners with the Setup, the others
// with its answers. What an agent can make the gate hold is bounded by count
// (connections, questions, queries), by size (16 KiB of first bytes, 64 KiB
// of a datagram, nothing of a relayed stream: that stays in kernel pipes), and
// by time (each wait for the agent has an end, unless both sides relay).
//
// TLS is read by crypto/tls and HTTP by net/http. Where two readers of the same
// bytes could see two names, the gate refuses instead of choosing.
//
// DNS sockets for datagrams must be bound to port 53, of 127.0.0.11 or (then
// transparent) of every address: an answer leaves through the socket that the
// query came in by, its source address set by IP_PKTINFO, its port the
// socket's own. They are the only sockets that the gate ever gives a
// destination, so Serve tells their numbers to its caller, who forbids it for
// all others: a connected socket of the host's can then send to its peer alone.
//
// The package cannot dial, and decides nothing that the broker does not decide
// again.
package gate
