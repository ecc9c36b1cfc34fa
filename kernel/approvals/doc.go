// Package approvals is the service of approvals: people decide what no rule decides.
//
// # Theory of operation
//
// A question is one row of a run. It comes from the run's supervisor (a connection that no rule covers:
// approval.ask), or from the engine (a call of the agent whose method declares a question, and that the run asks
// about). The row has exactly what a person sees, and the digest of it. An equal question of the run gets the
// same row: while it waits, and for as long as its answer holds, nothing is asked again.
//
// The owner of the run or root answers, as a user of cloved's socket, which is in no sandbox; an agent has no
// method to answer with. The answer names the digest of what was seen. It never allows more than the
// answerer may allow by a rule. Without an answer in time it is a no, as it is when the run ends.
//
// What asks waits by the topic of the question. A call of the agent is done in the transaction of the
// engine behind the answer; a held connection is its supervisor's, and is asked about again when it is made again.
package approvals
