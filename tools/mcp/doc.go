// Package mcp is the MCP server of clove-mcp: it turns what clients say into typed calls over a
// channel, and the answers into theirs. It decides nothing and has no rights: the other side of the
// channel knows for which run, or user, it decides.
//
//	client ── POST /mcp, or two pipes ──▶ clove-mcp ══ tool.list, tool.call, and with Kernel ══▶ root's side
//	          JSON-RPC of MCP                           services such as mail.send (kernel/channel)
//
// Two revisions of the protocol are in use, at one URL. A request of 2026-07-28 stands for itself. One of
// 2025-11-25 or before belongs to a session, which initialize has begun. Each has a handler of the SDK's
// (revision.go). A session of a clove-mcp that has gone is served on without its state: its client notices
// nothing, but that a notification cannot cancel a call any more.
//
// Tools are listed anew for each request, and each call is decided by the other side, so that a grant
// that is given or revoked holds at once.
//
// Everything is bounded: connections, requests in flight, sessions, the size of a request, the time for
// reading one and for writing an answer, the parts of a list. A call ends when its client cancels it, goes,
// or ends its session; what has a progress token gets notifications meanwhile.
//
// A request whose Host is not this machine, or whose Origin is another site's, is refused: a name that
// a web page has rebound to 127.0.0.1 would have the user's browser call tools. Where the listener is no
// identity, each request needs the token. Neither tokens nor bodies are logged.
package mcp
