// Package link has the messages between root's side and clove-mcp, which are packets
// (internal/packet). With each listener comes a channel (kernel/channel), over which clove-mcp makes
// calls: the one that answers them knows from the channel for which run, or user, it decides.
package link

// ToDoor is a message to clove-mcp. Exactly one field is set.
type ToDoor struct {
	// Serve has agents served at a listener: two descriptors, the listener and the channel.
	Serve *Serve `json:"serve,omitempty"`
	// Stdio has one client served at two pipes: three descriptors, its stdin, its stdout and the channel.
	Stdio *Serve `json:"stdio,omitempty"`
	// Leave is the name of a Serve that has ended.
	Leave string `json:"leave,omitempty"`
}

// Serve is what is served.
type Serve struct {
	Name  string `json:"name"`            // of a run, or of a server; for Leave
	Title string `json:"title,omitempty"` // of the server, for clients
	// Token is the bearer token that requests must have; empty: the listener is the identity.
	Token string `json:"token,omitempty"`
	// Kernel has the services of the kernel as tools, too: mail, state, jobs, spawn, budgets.
	Kernel bool `json:"kernel,omitempty"`
}

// FromDoor is a message of clove-mcp. Exactly one field is set.
type FromDoor struct {
	Ready bool `json:"ready,omitempty"` // it has no rights left
	// Ended is the name of a Stdio whose client has gone.
	Ended string `json:"ended,omitempty"`
}
