// Package linear checks that concurrent callers of cloved see one order of answers. It
// calls cloved from many workers, keeps each request with its times and its answer, and
// looks for an order of all of them in which every answer is right.
//
//	Load.Run ── client ── cloved        workers, each with one question at a time
//	   │ history
//	   ▼
//	Check ── porcupine ── Model         one group of names after the other
//
// The model (model.go) is what docs/api.md says of six methods, for one name
// that is free or has one run. A run's way from queued to running is not in the
// hands of callers, nor when exactly one that was killed has ended: the model
// keeps how far a run has been seen to be, and whether a caller ended it.
// Names come in pairs that runs are renamed between, so a pair is what one
// history is about.
//
// Budgets have a model of their own (budget.go): what an account grants, and what callers
// reserve in it, settle, charge and see. So have grants (grant.go), mailboxes (box.go), keys (key.go),
// names (name.go) and jobs (job.go).
//
// It refuses to know cloved: it sees only what any client sees.
package linear
