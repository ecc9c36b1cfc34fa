// Package jobs is the service by which agents share out work.
//
// # Theory of operation
//
// A user makes a queue (queue.add) of a namespace. A job is a message (package kernel/lease) in its box, with an
// attempt, a lease and a holder. An agent adds one with a grant of kind send for job/QUEUE, and another claims one
// with a grant of kind name for it: job.claim takes the next ready job in one transaction with its answer, so no two
// runs hold one. The holder completes it, with calls that are done in the same transaction, or fails it. It comes
// back when its holder fails it, ends, or lets the lease run out, behind a pause that doubles; when its attempts or
// its deadline are over it is a dead letter, which people see and retry.
//
// Time does something to jobs in one place (Tick), which the one timer of package kernel calls when the first of all
// is due.
//
// A queue with a manifest needs no agent that claims: for each ready job a run is started (Starter), which holds the
// job as long as it lasts. The manifest is held by the digest that it had when the user named it. The job is the
// run's standard input, and gives it no arguments, environment or rights. What it does is charged to the owner of the
// queue, as with every run of theirs. Starts take turns between namespaces and are bounded (starts.go).
//
// A queue that a run has made for itself (queue.open) starts children of that run, as agent.spawn does: with its
// grant, its places and its accounts. It ends with that run, unless it has jobs: then it stays, and starts nothing.
//
// A job or queue of another owner or namespace, and a job that the caller neither holds nor has added, is reported as
// one that does not exist.
package jobs
