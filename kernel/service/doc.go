// Package service is the engine below everything that agents share: one transaction for each
// call, with its audit entry, the answer that a repetition gets, waiting and notices. It knows no
// service. A service is a package of its own, which declares tables and methods as values:
//
//	var Service = service.New("audit").On(
//		service.Read(agents.AuditRead, service.Stages[api.AuditReadParams]{Covers: api.AuditReadParams.Names}, read))
//
// The root (package kernel) lists the services, and hands in what the stages ask: the grants, the
// taints, the ledger of budgets and the approvals.
//
// A call passes these stages, in this order; each may refuse with a typed error:
//
//	known    the method exists for the caller, and its parameters are sound
//	grant    grants of the agent's cover what the call names (Stages.Covers)
//	taints   the agent carries no taint that the call must not meet (Stages.Avoids)
//	budget   the upper bound of what it costs is reserved (Stages.Costs)
//	approval people have approved it (Stages.Approve)
//	do       the method does it, and returns a result and an Outcome
//	settle   what it cost is settled
//	audit    the decision is in the audit log, and the answer is kept for a repetition
//	notices  runs are told, and waiting calls look again
//
// A method that changes something passes all of them in one transaction of the store. Many calls
// share one commit. A method may run more than once for that, and must change nothing but the
// transaction; its Outcome has the actions that follow when it is durable.
//
// # Waiting
//
// A waiting method looks in a read transaction. Where there is nothing yet, the call gives its
// place back and is kept with its topic; a commit that touches the topic has it look again. A
// waiting call has no goroutine. Its context ends it. A call that waits for people is stored
// (approval.go): it survives a restart, and its answer is found by its key.
//
// The engine parses no byte of an agent's, and refuses what it cannot record: while the audit log
// has no space, nothing is decided.
package service
