// Package spawn is the service by which agents start agents, wait for them and end them.
//
// # Theory of operation
//
// An owner adds a manifest (manifest.add): a spec that was resolved with the owner's rights, and the
// digests of the files of the host that a run of it executes. It is kept below the digest of all that, and
// no file of the host is read for an agent later. A grant of kind spawn names a manifest, and holds the
// digest that the name had when it was given: what is added under the name afterwards changes nothing.
//
// A request (agent.spawn) has fields that make the manifest narrower, and no others (narrow.go). The spec
// that results is the child's, if it has in no dimension more than the parent's has now (policies/compare),
// and if the parent's live grants cover each of its grants. One transaction takes the child's place among
// those that the parent may have at once, derives its grants, and keeps the run as it is to be queued. When
// that is durable the call is answered, and the run is queued in the other store; a cloved that starts does
// that for those that were not (Recover). So a spawn that was answered happens, and happens once.
//
// Where the run asks people (agent.AskSpawn) and has no grant, the newest manifest of the name takes the place of the
// grant's, and its digest is bound to the answer: what they have allowed is what is started (question.go).
//
// When a child has ended for good, its place is free again, its end is kept below its parent (End), the
// parent's agent is told, and calls that wait for it are answered. Rows of children stay until the parent
// is removed.
//
// clove itself starts runs too (starts.go): for a job of a queue, or for mail to a name that no run holds. The user
// that made the queue or reserved the name has named the manifest, which is held by its digest and is the owner's.
// Such a run is below no other. It gets a line of standard input, and nothing else that the manifest does not say.
//
// An agent reaches its descendants and no other run: another is reported as one that does not exist.
//
// # What it does not do
//
// It starts, signals and reads nothing: Runs does. It does not hold limits: a cgroup above the parent and
// its children does, the accounts of the runs above do, and the supervisors of the children watch the
// parent's.
package spawn
