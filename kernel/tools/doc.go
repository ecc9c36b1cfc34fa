// Package tools is the service through which agents call tools (package tools).
//
// # Theory of operation
//
// tool.list shows the tools that the run's grants cover. tool.call takes one call through these steps:
//
//	find     the tool exists
//	reserve  a grant tool:NAME covers it and is used once, and one of tool_calls is reserved, with its
//	         audit entry (package kernel/ledger); a call may find a reservation that was drawn before
//	run      clove-tool runs in a sandbox, with the arguments on its stdin
//	settle   what was used is paid: nothing, where the program never ran
//
// The call has no transaction of its own, because it may take long. It ends with its caller: cancel,
// the end of the agent's connection or of the run end the program with all that it has started. What
// was reserved when cloved is killed counts as used.
//
// Nothing here reads what an agent or a program wrote: arguments go to clove-tool as they are, which
// checks them against the tool's schema before it does anything, and results go to the caller as text.
package tools
