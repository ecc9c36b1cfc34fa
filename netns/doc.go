// Package netns makes the network namespace of an agent, with the routes and nftables rules
// that lead to its gate, and prepares that of an OCI container with network rules.
//
// The host makes the namespace before the agent's user namespace exists, so the host's
// user namespace owns it (network_namespaces(7)): the agent has no CAP_NET_ADMIN over
// its own network, whatever it becomes inside. The namespace has one interface,
// loopback, and no route out. It has no name and no mount. Descriptors and processes
// keep it alive, so it disappears with the last process that uses it, also after
// kill -9.
//
// A Plan says what else is in it. With Everything, two routes make all addresses of
// the world local, and one nft table redirects what is sent to them to sockets that
// Listen made:
//
//	connect(203.0.113.5:443) ─ output: loopback source, tcp or udp ─▶ lo
//	  ─ prerouting: tproxy ─▶ gate's socket, whose getsockname() or
//	                          IP_ORIGDSTADDR is 203.0.113.5:443
//
// tproxy changes no packet, so no connection tracking is needed, whose table an agent
// could fill. Where no socket of the gate exists, TCP is reset and UDP is unreachable:
// without a gate there is no network. What is for the name server's address goes to the
// gate in the same way, by a rule and not by a socket there, because every user inside may
// listen on ports below 1024. An echo request is answered with "administratively
// prohibited", and all other protocols are dropped.
//
// An EnginePlan is for a namespace that a container engine made. Its interfaces,
// addresses and routes are not changed. The rules mark what the container sends, a
// policy route leads the mark to loopback, and from there tproxy works as above. Only
// sockets that Namespace.Socket made, which have another mark, send through an
// interface:
//
//	connect(203.0.113.5:443) ─ output: mark ─▶ lo ─ prerouting: tproxy ─▶ gate
//	gate's outside socket, marked ─ output ─▶ eth0 ─▶ the engine's own rules
//
// These rules stay after the gate's death, until Clear: without a gate the container
// must have no network either.
//
// It refuses to decide which targets are allowed: package egress does.
//
// Decision 12 (docs/decisions) says why everything ends at a socket, and not at rules that
// let some of it out.
package netns
