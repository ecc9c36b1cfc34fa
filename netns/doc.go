// Package netns makes the network namespace that an agent lives in.
//
// The namespace is made by the host, before the agent's user namespace, and so
// belongs to the host: whatever the agent becomes inside, it has no
// CAP_NET_ADMIN over its own network. It holds one interface, loopback, and no
// way out. It has no name and no mount: a descriptor keeps it alive, so it dies
// with the last process that uses it, kill -9 included.
//
// A Plan says what else is in it. With Everything, all addresses of the world
// are local (two routes), and one nft table brings what is sent there to
// sockets that Listen made:
//
//	connect(203.0.113.5:443) ─ output: loopback source, tcp or udp ─▶ lo
//	  ─ prerouting: tproxy ─▶ gate's socket, whose getsockname() or
//	                          IP_ORIGDSTADDR is 203.0.113.5:443
//
// tproxy changes no packet, so there is no connection tracking whose table an
// agent could fill. Where no socket of the gate is left, TCP is reset and the
// rest is dropped: without a gate there is no network.
//
// An EnginePlan is for a namespace that a container engine made, with interfaces
// and routes that stay as they are. What is sent is marked, a route for the mark
// leads it to loopback, and from there it goes the same way; only sockets that
// Namespace.Socket made, which carry another mark, send by an interface:
//
//	connect(203.0.113.5:443) ─ output: mark ─▶ lo ─ prerouting: tproxy ─▶ gate
//	gate's outside socket, marked ─ output ─▶ eth0 ─▶ the engine's own rules
//
// There the rules outlive the gate, until Clear.
//
// It refuses to decide who may talk to whom: that is policy.
package netns
