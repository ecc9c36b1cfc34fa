package jobs

import (
	"cmp"
	"encoding/json"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Jobs is the service.
type Jobs struct {
	// Starter starts runs for queues that have a manifest.
	Starter Starter
	Blobs   Blobs // nil: bodies name none
	// Due is called with a time at which Tick has something to do; zero: with none. It must not block.
	Due func(time.Time)
}

// Blobs finds blobs that bodies name.
type Blobs interface {
	// Held returns one that a body of the call's may name, of an owner; nil for no digest.
	Held(c *service.Call, owner uint32, digest string) (*api.Blob, error)
}

// Tables are those of the package.
func Tables() []store.Declared { return []store.Declared{Queues} }

// Service returns its methods.
func (j *Jobs) Service() *service.Service {
	add := service.Stages[api.JobAddParams]{About: func(p api.JobAddParams) string { return scopePrefix + p.Queue },
		Covers: func(p api.JobAddParams) []string {
			return []string{string(grant.Send) + ":" + scopePrefix + p.Queue}
		},
		Costs: func(api.JobAddParams) (budget.Amounts, error) {
			return budget.Amounts{budget.Messages: 1}, nil
		}}
	claim := service.Stages[api.JobClaimParams]{About: func(p api.JobClaimParams) string { return scopePrefix + p.Queue },
		Covers: func(p api.JobClaimParams) []string {
			return []string{string(grant.Name) + ":" + scopePrefix + p.Queue}
		}}
	return service.New("job", Tables()...).On(
		service.Write(agents.JobAdd, add, j.add),
		service.Claim(agents.JobClaim, claim, claimed, there, j.claim).Idles(),
		service.Write(agents.JobRenew, service.Stages[api.JobParams]{}, j.renew),
		service.Write(agents.JobComplete, service.Stages[api.JobCompleteParams]{}, j.complete),
		service.Write(agents.JobFail, service.Stages[api.JobFailParams]{}, j.fail),
		service.Read(agents.JobGet, service.Stages[api.JobGetParams]{}, get),
		service.Read(agents.JobList, service.Stages[api.JobListParams]{}, heldJobs),
		service.Prepared(agents.QueueOpen, opens, j.prepareOpen, j.open, nil),
		service.Write(agents.QueueClose, service.Stages[api.QueueCloseParams]{}, j.closeQueue),
		service.Write(methods.JobsAdd, service.Stages[api.JobsAddParams]{}, j.post),
		service.Read(methods.JobsList, service.Stages[api.JobsListParams]{}, list),
		service.Read(methods.JobsShow, service.Stages[api.JobGetParams]{}, show),
		service.Write(methods.JobsRetry, service.Stages[api.JobParams]{}, j.retry),
		service.Write(methods.JobsCancel, service.Stages[api.JobParams]{}, j.cancel),
		service.Write(methods.QueueAdd, service.Stages[api.QueueAddParams]{}, j.addQueue),
		service.Read(methods.QueueList, service.Stages[api.QueueListParams]{}, j.listQueues),
		service.Write(methods.QueueRemove, service.Stages[api.QueueRemoveParams]{}, j.removeQueue),
	)
}

// noTime is no time: nothing is due because of it.
var noTime time.Time

func topicOf(box string) service.Topic { return service.Topic("job/" + box) }

// changed has calls look again that wait for jobs of boxes, and Tick and Begin be called: at due, where that is not
// zero, and at once where something may be started.
func (j *Jobs) changed(out *service.Outcome, due time.Time, boxes ...string) {
	for _, box := range boxes {
		out.Topics = append(out.Topics, topicOf(box))
	}
	out.Durable = append(out.Durable, func() { j.Due(due) })
}

// soonest is now where clove may start something, and else due.
func soonest(starts bool, now, due time.Time) time.Time {
	if starts {
		return now
	}
	return due
}

// queueOf is a queue of the namespace of the call's run.
func queueOf(c *service.Call, name string) (*Queue, error) {
	return find(c.Tx, c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, name)
}

func (j *Jobs) add(c *service.Call, p api.JobAddParams) (result api.JobResult, out service.Outcome, err error) {
	q, err := queueOf(c, p.Queue)
	if err != nil {
		return result, out, err
	}
	return j.put(c, q, p.NewJob)
}

// put adds a job of the caller's to a queue.
func (j *Jobs) put(c *service.Call, q *Queue, p api.NewJob) (result api.JobResult, out service.Outcome, err error) {
	w := &lease.Work{Most: cmp.Or(p.Attempts, q.Attempts), Backoff: q.Backoff}
	m := &lease.Message{Priority: p.Priority, Work: w, Mail: api.Mail{To: q.Name, Trace: cmp.Or(p.Trace, c.ID), Body: p.Body}}
	if m.Blob, err = j.Blobs.Held(c, q.Owner, p.Blob); err != nil {
		return result, out, err
	}
	if err := cmp.Or(lease.Check(m, p.DelayMS, p.DeadlineMS), checkAttempts(w.Most)); err != nil {
		return result, out, err
	}
	if p.DelayMS > 0 {
		w.Due = c.Now.Add(time.Duration(p.DelayMS) * time.Millisecond).UTC()
	}
	if p.DeadlineMS > 0 {
		w.Deadline = c.Now.Add(time.Duration(p.DeadlineMS) * time.Millisecond).UTC()
	}
	m.From, m.Sender, m.Sent, m.Causation = c.Run.Spec.ID, cmp.Or(c.Run.Spec.Name, c.Principal()), c.Now.UTC(), c.ID
	if err := lease.Put(c.Tx, q.box(), m); err != nil {
		return result, out, err
	}
	out.About, out.Owner = about(q.Name, m), &q.Owner
	j.changed(&out, soonest(q.Manifest != "", c.Now, w.Next()), m.Box)
	result.Job = shown(m, q.box())
	result.Job.Body = nil // the caller has it
	return result, out, nil
}

// about is a job as the audit log has it.
func about(queue string, m *lease.Message) string { return scopePrefix + queue + " " + m.ID }

func claimed(c *service.Call, p api.JobClaimParams) service.Topic {
	return topicOf(lease.QueueBox(c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, p.Queue).ID())
}

// there reports whether a claim can get a job.
func there(c *service.Call, p api.JobClaimParams) error {
	q, err := queueOf(c, p.Queue)
	if err != nil {
		return err
	}
	_, err = next(c.Tx, q, c.Now)
	return err
}

// next is the job of a queue that the next claim gets; ErrNotYet: none does now.
func next(tx *store.KernelTx, q *Queue, now time.Time) (*lease.Message, error) {
	b, err := lease.Boxes.Get(tx, q.box().ID())
	if err != nil {
		return nil, err
	}
	if b == nil || q.Concurrency > 0 && b.Held >= q.Concurrency {
		return nil, service.ErrNotYet
	}
	m, err := lease.Ready(tx, q.box(), now)
	if err == nil && m == nil {
		err = service.ErrNotYet
	}
	return m, err
}

// heldMost bounds the jobs that a run holds.
const heldMost = 64

func (j *Jobs) claim(c *service.Call, p api.JobClaimParams) (result api.JobResult, out service.Outcome, err error) {
	q, err := queueOf(c, p.Queue)
	if err != nil {
		return result, out, err
	}
	if q.Manifest != "" {
		return result, out, api.Failure(api.CodeConflict, "add jobs to it, or claim those of a queue without a manifest", "clove starts %s for the jobs of %s", q.Manifest, q.Name)
	}
	m, err := next(c.Tx, q, c.Now)
	if err != nil {
		return result, out, err
	}
	held, err := lease.HeldBy(c.Tx, c.Run.Spec.ID)
	if err == nil && len(held) >= heldMost {
		err = api.Failure(api.CodeBusy, "complete or fail some", "the run holds %d jobs", heldMost)
	}
	if err != nil {
		return result, out, err
	}
	if err := lease.Hold(c.Tx, m, c.Run.Spec.ID, c.Now.Add(q.Lease).UTC(), c.Now); err != nil {
		return result, out, err
	}
	out.About = about(q.Name, m)
	j.changed(&out, m.Work.Next(), m.Box)
	result.Job = shown(m, q.box())
	return result, out, nil
}

// near is a job of the namespace of the call's run.
func near(c *service.Call, id string) (*lease.Message, *lease.Box, error) {
	return lease.Job(c.Tx, id, func(b *lease.Box) bool {
		return b.Owner == c.Run.Owner.UID && b.Namespace == c.Run.Spec.Kernel.Namespace
	})
}

// held is a job that the call's run holds.
func held(c *service.Call, id string) (*lease.Message, *lease.Box, error) {
	m, b, err := near(c, id)
	if err == nil && (m == nil || !m.Holds(c.Run.Spec.ID, c.Now)) {
		err = api.Failure(api.CodeNotFound, "job.list has those that it holds: a lease may have run out", "the run holds no job %.64q", id)
	}
	return m, b, err
}

func (j *Jobs) renew(c *service.Call, p api.JobParams) (result api.JobResult, out service.Outcome, err error) {
	m, b, err := held(c, p.ID)
	if err != nil {
		return result, out, err
	}
	if !m.Work.Until.IsZero() {
		q, err := find(c.Tx, b.Owner, b.Namespace, b.Name)
		if err == nil {
			err = lease.Extend(c.Tx, m, c.Now.Add(q.Lease).UTC())
		}
		if err != nil {
			return result, out, err
		}
	}
	out.About = about(b.Name, m)
	j.changed(&out, m.Work.Next())
	result.Job = shown(m, b.Of)
	result.Job.Body = nil
	return result, out, nil
}

func (j *Jobs) complete(c *service.Call, p api.JobCompleteParams) (result api.JobCompleteResult, out service.Outcome, err error) {
	m, b, err := held(c, p.ID)
	var content *api.Blob
	if err == nil {
		content, err = j.Blobs.Held(c, b.Owner, p.Blob)
	}
	err = cmp.Or(err, lease.CheckResult(&p.Result))
	starts := err == nil && m.Work.Until.IsZero()
	own := blob.UploadsOf(c.Principal()) // the calls in then may still name the job's blob
	if err == nil {
		err = cmp.Or(lease.Finish(c.Tx, m, p.Result, content, c.Now), blob.Refer(c.Tx, b.Owner, own, m.Blob))
	}
	if err != nil {
		return result, out, err
	}
	out.About = about(b.Name, m)
	j.changed(&out, soonest(starts, c.Now, noTime), m.Box)
	results, more, err := c.Then(p.Then)
	err = cmp.Or(err, blob.Drop(c.Tx, b.Owner, own, m.Blob))
	result.Results = results
	out.Add(more)
	return result, out, err
}

func (j *Jobs) fail(c *service.Call, p api.JobFailParams) (result api.JobResult, out service.Outcome, err error) {
	if err := agent.ValidateReason(p.Why); err != nil {
		return result, out, err
	}
	m, b, err := held(c, p.ID)
	if err != nil {
		return result, out, err
	}
	starts := m.Work.Until.IsZero()
	if p.Dead {
		err = lease.Kill(c.Tx, m, cmp.Or(p.Why, "its holder gave up"), c.Now)
	} else {
		err = lease.Return(c.Tx, m, cmp.Or(p.Why, "it failed"), c.Now)
	}
	out.About, out.Reason = about(b.Name, m), p.Why
	j.changed(&out, soonest(starts, c.Now, m.Work.Next()), m.Box)
	result.Job = shown(m, b.Of)
	result.Job.Body = nil
	return result, out, err
}

// seen is a job that the call's run holds, or has added.
func seen(c *service.Call, id string) (m *lease.Message, b *lease.Box, err error) {
	m, b, err = near(c, id)
	if err == nil && (m == nil || m.From != c.Run.Spec.ID && !m.Holds(c.Run.Spec.ID, c.Now)) {
		err = noJob(id)
	}
	return m, b, err
}

// Holder is a job that the call's run holds, or has added, as a holder of blobs.
func Holder(c *service.Call, id string) (string, error) {
	m, _, err := seen(c, id)
	if err != nil {
		return "", err
	}
	return m.Holder(), nil
}

// get returns a job that the call's run holds, or has added.
func get(c *service.Call, p api.JobGetParams) (result api.JobResult, out service.Outcome, err error) {
	m, b, err := seen(c, p.ID)
	if err == nil {
		result.Job = shown(m, b.Of)
	}
	return result, out, err
}

func noJob(id string) error {
	return api.Failure(api.CodeNotFound, "one that was cancelled is gone, and of a queue the last ones that are done are kept", "no job %.64q", id)
}

// heldJobs are those of the call's run.
func heldJobs(c *service.Call, _ api.JobListParams) (result api.JobListResult, out service.Outcome, err error) {
	all, err := lease.HeldBy(c.Tx, c.Run.Spec.ID)
	result.Jobs = []api.Job{}
	for _, m := range all {
		if !m.Holds(c.Run.Spec.ID, c.Now) {
			continue
		}
		b, berr := lease.Boxes.Get(c.Tx, m.Box)
		if err = cmp.Or(err, berr); err != nil {
			return result, out, err
		}
		a := shown(m, b.Of)
		a.Body = nil
		result.Jobs = append(result.Jobs, a)
	}
	return result, out, err
}

// shown is a job as callers see it.
func shown(m *lease.Message, of lease.Of) api.Job {
	w := m.Work
	a := api.Job{ID: m.ID, Owner: of.Owner, Namespace: of.Namespace, Queue: of.Name, State: api.JobReady, Priority: m.Priority, From: m.From, Sender: m.Sender, Added: m.Sent,
		Deadline: w.Deadline, Attempts: w.Attempts, AttemptsMost: w.Most, Holder: w.Holder, Until: w.Until, Ended: m.Died, Why: cmp.Or(m.Dead, w.Why),
		Trace: m.Trace, Causation: m.Causation, Body: body(m), Blob: m.Blob, Result: w.Result, ResultBlob: w.ResultBlob, Output: w.Output}
	switch {
	case m.Dead != "":
		a.State = api.JobDead
	case w.Order > 0:
		a.State, a.Why = api.JobDone, ""
	case w.Holder != "":
		a.State = api.JobHeld
	case !w.Due.IsZero():
		a.State, a.Due = api.JobDelayed, w.Due
	}
	return a
}

// body is a job's body; nil: it is a blob alone.
func body(m *lease.Message) json.RawMessage {
	if m.Blob != nil && string(m.Body) == "null" {
		return nil
	}
	return m.Body
}

// Free takes from a run the jobs that it holds since before a moment, zero: all, and ends the queues that it has made
// before that. It has ended.
func (j *Jobs) Free(tx *store.KernelTx, run agent.ID, until, now time.Time, out *service.Outcome) error {
	boxes, err := lease.Free(tx, run, until, "its holder ended", now)
	if len(boxes) > 0 {
		j.changed(out, now, boxes...)
	}
	return cmp.Or(err, j.endMade(tx, run, until, out))
}

// Tick does what time does to jobs. next is when it has something to do again; zero: it waits for a call.
func (j *Jobs) Tick(e *service.Engine) (next time.Time, err error) {
	is := false
	look := func() error {
		return e.Read(func(tx *store.KernelTx) (err error) {
			is, next, err = lease.IsDue(tx, e.Now())
			return err
		})
	}
	for err = look(); err == nil && is; err = look() {
		err := e.Within(agent.Run{}, "jobs", "", func(c *service.Call) (out service.Outcome, err error) {
			boxes, err := lease.Ripen(c.Tx, c.Now)
			for _, box := range boxes {
				out.Topics = append(out.Topics, topicOf(box))
			}
			return out, err
		})
		if err != nil {
			return next, err
		}
	}
	return next, err
}
