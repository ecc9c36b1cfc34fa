// Package host is the host's side of a network behind a gate: it starts
// clove-gate, makes the sockets that the gate listens on, and serves it with a
// broker in this process.
//
//	Start ── listeners in the network namespace, ports of the host's
//	  │ exec     clove-gate: own namespaces, no environment, a user id of its own
//	  │ Serve    the broker answers over a socket pair, with the caller's rules
//	  ▼ the gate says that it has dropped its privileges: traffic flows
//	Gate ── Drain, Close, Stop; Lost reports a gate that ended by itself
//
// Local runs call Start with a namespace of their own. Guard does the same for an
// OCI container, in the namespace that an engine made: it writes down what takes
// the rules back, applies them, and stays until the container ends.
//
// clove-gate dies with its starter, by the parent-death signal. Orphans finds one
// that did not.
//
// It refuses to decide: rules are compiled by package egress and applied by
// egress/broker. It reads no byte that an agent wrote.
package host
