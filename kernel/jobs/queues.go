package jobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Queue is a queue of a namespace. Its jobs are in the box of its name.
type Queue struct {
	Owner       uint32        `json:"owner"`
	Namespace   string        `json:"namespace,omitempty"`
	Name        string        `json:"name"`
	Manifest    string        `json:"manifest,omitempty"` // empty: agents claim
	Digest      string        `json:"digest,omitempty"`   // of the manifest
	Concurrency int           `json:"concurrency,omitempty"`
	Attempts    int           `json:"attempts"`
	Backoff     time.Duration `json:"backoff_ns"`
	Lease       time.Duration `json:"lease_ns"`
	Turn        uint64        `json:"turn,omitempty"` // of its last start, among all
	Why         string        `json:"why,omitempty"`  // why nothing starts
	// Maker is the run that has made it, of which what is started are children, since Opened; empty: a user has made it.
	Maker  agent.ID  `json:"maker,omitempty"`
	Opened time.Time `json:"opened,omitzero"`
	Closed bool      `json:"closed,omitempty"` // Maker has ended: nothing is started
}

// Bounds and defaults of queues.
const (
	nameMost           = 128 // bytes
	queuesMost         = 256 // of a namespace
	madeMost           = 16  // of a run
	concurrencyMost    = lease.Usual
	concurrencyStarted = 64 // of a queue with a manifest
	attemptsMost       = 100
	attemptsUsual      = 3
	backoffUsual       = time.Second
	backoffMost        = time.Hour
	leaseUsual         = time.Minute
	leaseLeast         = 100 * time.Millisecond
	leaseMost          = 24 * time.Hour
	queuesInPart       = 40
)

// withManifest is the index of the queues that have a manifest.
const withManifest = "job_queues_started"

// byMaker is the index of the queues that runs have made.
const byMaker = "job_queues_made"

// Queues is the table of queues.
var Queues = store.Table[Queue]{
	Bucket: "job_queues", Noun: "queue",
	Key: func(q *Queue) string { return queueKey(q.Owner, q.Namespace, q.Name) },
	Sound: func(q *Queue) error {
		if (q.Manifest == "") != (q.Digest == "") || q.Attempts < 1 || q.Lease <= 0 {
			return errors.New("it has no settings with which jobs could be done")
		}
		return nil
	},
	Bound: store.Bound[Queue]{Most: queuesMost, Error: func(*Queue) error {
		return api.Failure(api.CodeBusy, "remove some", "the namespace has %d queues", queuesMost)
	}},
	Indexes: []store.Index[Queue]{{Bucket: withManifest, Terms: func(q *Queue) []string {
		if q.Manifest == "" || q.Closed {
			return nil
		}
		return []string{"yes"}
	}}, {Bucket: byMaker, Terms: func(q *Queue) []string {
		if q.Maker == "" {
			return nil
		}
		return []string{string(q.Maker)}
	}}},
}

// below is what the keys of a namespace's queues begin with.
func below(owner uint32, namespace string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", owner, namespace))
	return hex.EncodeToString(sum[:16]) + "/"
}

func queueKey(owner uint32, namespace, name string) string { return below(owner, namespace) + name }

// Counted are the numbers of a queue's jobs.
func Counted(tx *store.KernelTx, q *Queue) (n api.JobCounts, err error) {
	b, err := lease.Boxes.Get(tx, q.box().ID())
	if err != nil || b == nil {
		return n, err
	}
	ready, delayed, err := lease.Open(tx, b)
	return api.JobCounts{Ready: ready, Delayed: delayed, Held: b.Held, Dead: b.Dead, Done: b.Done}, err
}

func (q *Queue) box() lease.Of { return lease.QueueBox(q.Owner, q.Namespace, q.Name) }

// find returns a queue, or refuses.
func find(tx *store.KernelTx, owner uint32, namespace, name string) (*Queue, error) {
	q, err := Queues.Get(tx, queueKey(owner, namespace, name))
	if err == nil && q == nil {
		err = api.Failure(api.CodeNotFound, "clove queue add makes one", "no queue %.64q", name)
	}
	return q, err
}

// Queue is a part of what grants of agents cover: send and name of job/QUEUE.
const scopePrefix = "job/"

func checkName(name string) error {
	scope, err := grant.NewScope(grant.Name, scopePrefix+name, grant.NoRights)
	if err != nil || !scope.Concrete() || len(name) > nameMost {
		return api.Failure(api.CodeParams, "use at most 128 letters, digits and _.-/@+", "%.64q is no name of a queue", name)
	}
	return nil
}

// ownerOf is the user whose queues a user's call is about.
func ownerOf(c *service.Call, named *uint32) (uint32, error) {
	if named == nil || *named == c.UID {
		return c.UID, nil
	}
	if !c.Root() {
		return 0, api.Failure(api.CodeDenied, "leave the owner out", "only root names another user")
	}
	return *named, nil
}

func (j *Jobs) addQueue(c *service.Call, p api.QueueAddParams) (result api.QueueResult, out service.Outcome, err error) {
	out.About = p.Name
	owner, err := ownerOf(c, p.Owner)
	if err == nil {
		err = checkName(p.Name)
	}
	if err == nil && p.Namespace != "" {
		err = agent.ValidateNamespace(p.Namespace)
	}
	if err != nil {
		return result, out, err
	}
	q := &Queue{Owner: owner, Namespace: p.Namespace, Name: p.Name, Manifest: p.Manifest}
	if err := q.set(p); err != nil {
		return result, out, err
	}
	if p.Manifest != "" {
		if q.Digest, q.Namespace, err = j.Starter.Digest(c.Tx, owner, p.Manifest, p.Namespace); err != nil {
			return result, out, err
		}
	}
	old, err := Queues.Get(c.Tx, Queues.Key(q))
	if err != nil {
		return result, out, err
	}
	if old != nil {
		q.Turn = old.Turn
	}
	if err := Queues.Put(c.Tx, q); err != nil {
		return result, out, err
	}
	out.Owner = &owner
	j.changed(&out, c.Now, q.box().ID())
	result.Queue, err = shownQueue(c.Tx, q)
	return result, out, err
}

// set takes the settings of a request.
func (q *Queue) set(p api.QueueAddParams) error {
	most, usual := concurrencyMost, 0
	if p.Manifest != "" {
		most, usual = concurrencyStarted, 1
	}
	q.Concurrency, q.Attempts = cmp.Or(p.Concurrency, usual), cmp.Or(p.Attempts, attemptsUsual)
	var err error
	if q.Concurrency < 0 || q.Concurrency > most {
		err = api.Failure(api.CodeParams, "", "concurrency is at most %d", most)
	}
	err = cmp.Or(err, checkAttempts(q.Attempts))
	q.Backoff, err = duration(err, "backoff_ms", p.BackoffMS, backoffUsual, time.Millisecond, backoffMost)
	q.Lease, err = duration(err, "lease_ms", p.LeaseMS, leaseUsual, leaseLeast, leaseMost)
	return err
}

func checkAttempts(n int) error {
	if n < 1 || n > attemptsMost {
		return api.Failure(api.CodeParams, "", "a job has 1 to %d attempts", attemptsMost)
	}
	return nil
}

// duration reads milliseconds between two bounds; 0 are the usual ones.
func duration(before error, field string, ms int64, usual, least, most time.Duration) (time.Duration, error) {
	switch {
	case before != nil || ms == 0:
		return usual, before
	case ms < least.Milliseconds() || ms > most.Milliseconds():
		return 0, api.Failure(api.CodeParams, "", "%s is %s to %s", field, least, most)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// shownQueue is a queue as users see it.
func shownQueue(tx *store.KernelTx, q *Queue) (a api.Queue, err error) {
	a = api.Queue{Owner: q.Owner, Namespace: q.Namespace, Name: q.Name, Manifest: q.Manifest, Digest: q.Digest, Concurrency: q.Concurrency, Attempts: q.Attempts,
		BackoffMS: q.Backoff.Milliseconds(), LeaseMS: q.Lease.Milliseconds(), Why: q.Why, Maker: q.Maker}
	b, err := lease.Boxes.Get(tx, q.box().ID())
	if err == nil && b != nil {
		a.Waiting, a.Held, a.Dead, a.Done = b.Messages-b.Held, b.Held, b.Dead, b.Done
	}
	return a, err
}

func (j *Jobs) listQueues(c *service.Call, p api.QueueListParams) (result api.QueueListResult, out service.Outcome, err error) {
	if _, err := ownerOf(c, p.Owner); err != nil {
		return result, out, err
	}
	result.Queues = []api.Queue{}
	for after := p.After; ; {
		page, next, err := Queues.Page(c.Tx, "", after, queuesInPart-len(result.Queues))
		for _, q := range page {
			if !mine(c, q.Owner) || p.Owner != nil && q.Owner != *p.Owner || p.Namespace != nil && q.Namespace != *p.Namespace {
				continue
			}
			a, qerr := shownQueue(c.Tx, q)
			result.Queues, err = append(result.Queues, a), cmp.Or(err, qerr)
		}
		if after, result.Next = next, next; err != nil || next == "" || len(result.Queues) == queuesInPart {
			return result, out, err
		}
	}
}

// mine reports whether a user sees what belongs to an owner.
func mine(c *service.Call, owner uint32) bool { return c.Root() || owner == c.UID }

func (j *Jobs) removeQueue(c *service.Call, p api.QueueRemoveParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = p.Name
	owner, err := ownerOf(c, p.Owner)
	if err != nil {
		return none, out, err
	}
	q, err := find(c.Tx, owner, p.Namespace, p.Name)
	if err != nil {
		return none, out, err
	}
	out.Owner = &owner
	return none, out, j.remove(c.Tx, q, &out)
}

// remove removes a queue that has nothing to be done and nothing dead.
func (j *Jobs) remove(tx *store.KernelTx, q *Queue, out *service.Outcome) error {
	b, err := lease.Boxes.Get(tx, q.box().ID())
	if err == nil && b != nil && b.Messages+b.Dead > 0 {
		err = api.Failure(api.CodeConflict, "cancel them first: clove jobs list", "the queue %s has %d jobs to be done, and %d dead ones", q.Name, b.Messages, b.Dead)
	}
	if err != nil {
		return err
	}
	j.changed(out, noTime, q.box().ID()) // calls that wait for its jobs are refused
	return cmp.Or(lease.Forget(tx, q.box()), Queues.Delete(tx, Queues.Key(q)))
}
