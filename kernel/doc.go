// Package kernel is what agents share: it decides each call of an agent, from its
// grants and budgets, and writes what it decided into the audit log.
//
// An agent calls over its own socket. Nobody who parses its bytes decides, and nobody
// who decides parses its bytes:
//
//	agent ── agent.sock ──▶ clove-gate ══ typed calls ══▶ supervisor ──▶ Kernel, in cloved
//	         JSON lines      no rights     one packet                     or, without cloved,
//	         (kernel/socket)               (kernel/channel)               in the supervisor
//
// The Kernel is one type over one bbolt file (store.Kernel). In cloved the file is
// kernel.db in the state directory. A foreground run without cloved has a file of its
// own in its run directory, with the same schema: the same code decides, and what a
// killed clove leaves can be read. Such a run has its own grants and budgets only.
//
// A call passes these stages, in this order; each may refuse with a typed error:
//
//	known    the method exists for agents, and its parameters are sound
//	grant    a grant covers what the call names
//	taints   (no taints yet)
//	budget   the upper bound of what it costs is reserved
//	approval (no approvals yet)
//	do       the service does it
//	settle   what it cost is settled
//	audit    the decision is in the audit log
//
// A service that spends for an agent reserves durably. So that a call does not wait for the
// disk, each settlement may draw a spare: the reservation of the next call.
//
// Decisions are pure and in packages of their own: kernel/grant (what covers what) and
// kernel/budget (what may be spent). Rows are in the store. This package joins them in one
// transaction for each change, together with the change's audit entry.
package kernel
