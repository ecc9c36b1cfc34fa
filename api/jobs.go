package api

import (
	"encoding/json"
	"time"

	"clove.run/clove/agent"
)

// The states of a job.
const (
	JobDelayed = "delayed" // it waits for its time, or for the pause before its next attempt
	JobReady   = "ready"   // it waits for a run that claims it, or that clove starts for it
	JobHeld    = "held"    // a run works on it
	JobDead    = "dead"    // its attempts or its deadline are over, or its holder said so
	JobDone    = "done"
)

// JobStates are all of them, in the order in which a job is in them.
var JobStates = []string{JobDelayed, JobReady, JobHeld, JobDead, JobDone}

// Job is a piece of work in a queue. All but Body, Blob, Result, ResultBlob, Priority, Delay, Deadline, AttemptsMost and Trace is set by clove.
type Job struct {
	ID        string    `json:"id" col:"JOB"` // opaque
	Owner     uint32    `json:"owner"`        // of the queue
	Namespace string    `json:"namespace,omitempty"`
	Queue     string    `json:"queue" col:"QUEUE"`
	State     string    `json:"state" col:"STATE"` // delayed, ready, held, dead or done
	Priority  int       `json:"priority,omitempty"`
	From      agent.ID  `json:"from,omitempty"` // the run that added it; absent: a user did
	Sender    string    `json:"sender" col:"FROM"`
	Added     time.Time `json:"added" col:"ADDED,age"`
	Due       time.Time `json:"due,omitzero"`      // when it is delayed: it is ready then
	Deadline  time.Time `json:"deadline,omitzero"` // then it is dead
	Attempts  int       `json:"attempts" col:"ATTEMPTS"`
	// AttemptsMost is how often it is tried.
	AttemptsMost int       `json:"attempts_most"`
	Holder       agent.ID  `json:"holder,omitempty"`             // the run that works on it
	Until        time.Time `json:"until,omitzero"`               // of the holder's lease; absent: it lasts as long as that run
	Ended        time.Time `json:"ended,omitzero"`               // when it was done or dead
	Why          string    `json:"why,omitempty" col:"WHY,,cut"` // why the last attempt failed
	// Trace and Causation are as in Mail.
	Trace     string          `json:"trace,omitempty"`
	Causation string          `json:"causation"`
	Body      json.RawMessage `json:"body,omitempty" col:"BODY,json,cut"` // left out by job.list
	Blob      *Blob           `json:"blob,omitempty" col:"BLOB,blob"`     // its body, or beside it; blob.read returns it
	Result    json.RawMessage `json:"result,omitempty"`                   // of one that is done
	// ResultBlob is the result of one that is done, or beside it. blob.read returns it to the run that added the job.
	ResultBlob *Blob  `json:"result_blob,omitempty"`
	Output     string `json:"output,omitempty"` // the end of what the last run wrote that clove has started for it
}

// JobResultMost bounds Job.Result, in bytes. What is larger is a blob.
const JobResultMost = 4 << 10

// NewJob is what a caller says of a job that it adds.
type NewJob struct {
	Queue      string          `json:"queue"`
	Body       json.RawMessage `json:"body"`                  // at most 48 KiB; null beside a blob: that alone
	Blob       string          `json:"blob,omitempty"`        // SHA-256 of one that the caller may read
	Priority   int             `json:"priority,omitempty"`    // 0 to 9; higher ones are taken first
	DelayMS    int64           `json:"delay_ms,omitempty"`    // from now; it is not taken before
	DeadlineMS int64           `json:"deadline_ms,omitempty"` // from now; then it is dead, also while a run holds it; 0: never
	Attempts   int             `json:"attempts,omitempty"`    // how often it is tried; absent: as the queue says
	Trace      string          `json:"trace,omitempty"`       // absent: a new one
}

// JobAddParams adds a job to a queue of the caller's namespace.
type JobAddParams struct {
	NewJob
	Keyed
}

// JobClaimParams waits for a job of a queue of the caller's namespace.
type JobClaimParams struct {
	Queue string `json:"queue"`
	Within
	Keyed
}

// JobParams names a job that the caller holds, has added, or, for users, owns.
type JobParams struct {
	ID string `json:"id"`
	Keyed
}

// JobGetParams names a job that is looked at.
type JobGetParams struct {
	ID string `json:"id"`
}

// JobResult is one job.
type JobResult struct {
	Job Job `json:"job"`
}

// JobCompleteParams ends a job that the caller holds: it is done.
type JobCompleteParams struct {
	ID     string          `json:"id"`
	Result json.RawMessage `json:"result,omitempty"` // at most 4 KiB
	Blob   string          `json:"blob,omitempty"`   // SHA-256 of one that the caller may read: the result, or beside it
	// Then are done with it, each with its own rights and costs: all that is named, or nothing.
	Then []ThenCall `json:"then,omitempty"` // at most 16
	Keyed
}

// JobCompleteResult has what the calls in Then returned, in their order.
type JobCompleteResult struct {
	Results []json.RawMessage `json:"results,omitempty"`
}

// JobFailParams gives a job that the caller holds back.
type JobFailParams struct {
	ID   string `json:"id"`
	Why  string `json:"why"`
	Dead bool   `json:"dead,omitempty"` // it is not tried again
	Keyed
}

// JobListParams asks for the jobs that the caller holds.
type JobListParams struct{}

// JobListResult has them, without their bodies.
type JobListResult struct {
	Jobs []Job `json:"jobs"`
}

// JobsAddParams adds a job to a queue of a user's.
type JobsAddParams struct {
	Owner     *uint32 `json:"owner,omitempty"` // absent: the caller; only root names another
	Namespace string  `json:"namespace,omitempty"`
	NewJob
	Keyed
}

// JobsListParams chooses jobs. Empty fields choose all that the caller may see.
type JobsListParams struct {
	Owner     *uint32 `json:"owner,omitempty"`
	Namespace *string `json:"namespace,omitempty"` // exactly this one; the empty one is the owner's own
	Queue     string  `json:"queue,omitempty"`
	State     string  `json:"state,omitempty"`
	After     string  `json:"after,omitempty"` // where the last answer ended
}

// JobsListResult is a part of the jobs: first those to be done, then dead and then done ones. Those of one queue
// are in the order of their priority.
type JobsListResult struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// Queue is a queue of jobs of a namespace. Agents with a grant send:job/NAME add jobs, and those with a grant
// name:job/NAME claim them.
type Queue struct {
	Owner     uint32 `json:"owner"`
	Namespace string `json:"namespace,omitempty" col:"NAMESPACE"`
	Name      string `json:"name" col:"QUEUE"`
	// Manifest is what clove starts for each job, as it was when the queue was added (Digest); empty: agents claim.
	Manifest    string `json:"manifest,omitempty" col:"MANIFEST"`
	Digest      string `json:"digest,omitempty"`
	Concurrency int    `json:"concurrency" col:"CONCURRENCY"` // jobs that are held at once; 0: as many as there are
	Attempts    int    `json:"attempts" col:"ATTEMPTS"`       // how often a job is tried, unless it says it
	BackoffMS   int64  `json:"backoff_ms"`                    // before the second attempt; doubled before each one after
	LeaseMS     int64  `json:"lease_ms" col:"LEASE,ms"`       // how long a run holds a job that it claims, and does not renew
	Waiting     int    `json:"waiting" col:"WAITING"`         // jobs
	Held        int    `json:"held" col:"HELD"`
	Dead        int    `json:"dead" col:"DEAD"`
	Done        int    `json:"done" col:"DONE"`         // the last ones, at most 256
	Why         string `json:"why,omitempty" col:"WHY"` // why clove starts nothing for jobs that wait
	// Maker is the run that has made it for itself; absent: a user has. What clove starts for it are children of that run.
	Maker agent.ID `json:"maker,omitempty"`
}

// QueueOpenParams makes a queue of the caller's own, or replaces the settings of one. Jobs that are there keep theirs.
type QueueOpenParams struct {
	Queue       string `json:"queue"`
	Manifest    string `json:"manifest,omitempty"`    // that clove starts for each job, as a child of the caller's; the job is its stdin
	Concurrency int    `json:"concurrency,omitempty"` // absent: 1 with a manifest, and else as many as there are
	Attempts    int    `json:"attempts,omitempty"`    // absent: 3
	BackoffMS   int64  `json:"backoff_ms,omitempty"`  // absent: 1000
	LeaseMS     int64  `json:"lease_ms,omitempty"`    // absent: 60000
	Keyed
}

// QueueCloseParams names a queue of the caller's own.
type QueueCloseParams struct {
	Queue string `json:"queue"`
	Keyed
}

// QueueAddParams makes a queue of a user's, or replaces the settings of one. Jobs that are there keep theirs.
type QueueAddParams struct {
	Owner       *uint32 `json:"owner,omitempty"`     // absent: the caller; only root names another
	Namespace   string  `json:"namespace,omitempty"` // absent: the manifest's
	Name        string  `json:"name"`
	Manifest    string  `json:"manifest,omitempty"`    // that clove starts for each job; the job is its stdin
	Concurrency int     `json:"concurrency,omitempty"` // absent: 1 with a manifest, and else as many as there are
	Attempts    int     `json:"attempts,omitempty"`    // absent: 3
	BackoffMS   int64   `json:"backoff_ms,omitempty"`  // absent: 1000
	LeaseMS     int64   `json:"lease_ms,omitempty"`    // absent: 60000
	Keyed
}

// QueueResult is one queue.
type QueueResult struct {
	Queue Queue `json:"queue"`
}

// QueueListParams chooses queues. Empty fields choose all that the caller may see.
type QueueListParams struct {
	Owner     *uint32 `json:"owner,omitempty"`
	Namespace *string `json:"namespace,omitempty"` // exactly this one; the empty one is the owner's own
	After     string  `json:"after,omitempty"`     // where the last answer ended
}

// QueueListResult is a part of the queues, in the order of the namespaces and of the names.
type QueueListResult struct {
	Queues []Queue `json:"queues"`
	Next   string  `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// QueueRemoveParams names a queue of a user's.
type QueueRemoveParams struct {
	Owner     *uint32 `json:"owner,omitempty"` // absent: the caller; only root names another
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Keyed
}
