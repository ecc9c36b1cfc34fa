// Package socket serves an agent's own socket, agent.sock, inside clove-gate: it reads
// what the agent writes, and passes each call on as a typed message (kernel/channel).
//
// The listener is the identity: each sandbox has one of its own. A connected socket can
// be passed to another sandbox through a shared folder, so each byte's sender is checked
// too: SO_PASSCRED is set before listen(2), the kernel adds the sender's ids to what
// recvmsg(2) returns, and a connection ends with the first byte from an id that is not
// of this sandbox. Descriptors that are sent along end it as well; the kernel never
// installs them here.
//
// A line is one JSON-RPC 2.0 object (no batch) of at most api.MaxAgentLine bytes. Its
// method must be a row of the API table for agents. Its parameters are decoded into the
// row's type and encoded anew.
//
// Everything is bounded: connections, calls in flight, the time for a line and for
// reading an answer, calls a second, notifications that wait for agent.listen. Where a
// call is refused for that, the answer says busy; beyond the rate the gate reads later.
package socket
