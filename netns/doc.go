// Package netns makes the network namespace that an agent lives in.
//
// The namespace is made by the host, before the agent's user namespace, and so
// belongs to the host: whatever the agent becomes inside, it has no
// CAP_NET_ADMIN over its own network. It holds one interface, loopback, and no
// way out. It has no name and no mount: a descriptor keeps it alive, so it dies
// with the last process that uses it, kill -9 included.
//
// It refuses to decide who may talk to whom: that is policy.
package netns
