// Package kernel lists the services that agents share, and starts and ends a run in them.
//
// An agent calls over its own socket. The process that parses its bytes does not decide, and the
// process that decides does not parse them:
//
//	agent ── agent.sock ──▶ clove-gate ══ typed calls ══▶ Kernel, in cloved
//	         JSON lines      no rights     one packet      or, without cloved,
//	         (kernel/socket)               (kernel/channel) in the supervisor
//
// The engine (kernel/service) takes each call through its stages in one transaction. Each service is
// a package that knows the engine and no other service:
//
//	kernel/grants    what a run may do
//	kernel/budgets   what a run may spend
//	kernel/ledger    what parts of clove's spend for an agent
//	kernel/records   what the audit log says
//
// Decisions are pure and in packages of their own: kernel/grant (what covers what) and kernel/budget
// (what may be spent). This package hands the services to each other as narrow interfaces, and keeps
// what needs several of them: the start and the end of a run, and how it stands.
//
// The engine works over one bbolt file (store.Kernel). In cloved the file is kernel.db in the state
// directory. A foreground run without cloved has a file of its own in its run directory, with the
// same schema (Own): the same code decides, and the file of a killed clove can be read. Such a run
// has its own grants and budgets only.
package kernel
