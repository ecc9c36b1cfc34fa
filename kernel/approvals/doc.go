// Package approvals is the service of approvals: people decide what no rule decides.
//
// # Theory of operation
//
// A question is one row of a run. The run's supervisor asks it about a connection that no rule covers. The row
// has exactly what a person sees, and the digest of it. An equal question of the run gets the same row: while it
// waits, and for as long as its answer holds, nothing is asked again.
//
// The owner of the run or root answers, as a user of cloved's socket, which is in no sandbox; an agent has no
// method to answer with. The answer names the digest of what was seen, and never allows more than the answerer may
// allow by a rule. A yes is a net grant of the run (package kernel/grants), which can be seen and revoked like any
// other. Without an answer in time it is a no, as it is when the run ends.
//
// A call of the agent's that no grant covers, and about which the run's spec asks people (service.Asked), is a question
// too: the engine keeps the call, and this service the question, which names it. The engine does the call when the
// answer is durable, with the parameters that came with it, and keeps the answer below the call's key. The yes takes the
// place of the grant that is missing for this one call, and of nothing else. Each such call is a question of its own; what
// was refused is not asked again.
//
// A call of a tool that may change something is a question of the kernel's own (package kernel/tools), where the run's spec asks people
// about tools: such a yes takes the place of no grant. The call waits with its caller, and uses the yes in the transaction of its
// reservation, as a use of a secret does. A question for which no call waits any more is taken back.
//
// What asks waits by the topic of the question. A held connection is its supervisor's: it ends with that, and is
// asked about again when it is made again.
package approvals
