// Package bench has the types and files of a bench's results: the line of results.jsonl for
// one attempt, and manifest.json with the conditions of all attempts.
//
// # One bench
//
//	suite.yaml ── suite ──▶ plan ──▶ run ──▶ results.jsonl, manifest.json ──▶ report, compare
//	                                  │
//	                 for each attempt │ at most as many as processors and memory allow
//	                                  ▼
//	   copy of the task's files ── sandbox 1: the agent ── its changes applied to the copy
//	                                                              │ read-only
//	   copy of the grader's files ─ sandbox 2: the grader ◀───────┘
//	                                  └─ score
//
// The parts have no sandbox code. Package run asks for an agent.Spec from policies/resolve, as
// clove run does, and hands it to what cmd/clove gives it (run.Sandboxes).
//
// # Results
//
// Each attempt has an outcome. Passed and failed are results: an agent that runs out of
// memory, time or budget has failed. Infrastructure means that the attempt says nothing about
// the agent: a sandbox did not start, somebody killed it, the host had no memory. Only such
// an attempt is tried again, and no rate counts it.
//
// # What it refuses
//
// An agent never shares a sandbox with a grader, and no code of an agent's runs in clove: of
// what an agent leaves, clove copies, hashes and compares bytes.
package bench
