package jobs

import (
	"cmp"
	"encoding/json"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/starts"
	"clove.run/clove/store"
)

// Starter starts runs for jobs.
type Starter interface {
	// Digest is that of the newest manifest of an owner with a name, and its namespace, which the one that is named
	// must be; empty: it may be any.
	Digest(tx *store.KernelTx, owner uint32, manifest, namespace string) (digest, of string, err error)
	// Start keeps a run that is started when the call is durable. Jobs.Ended is called when it has ended.
	Start(c *service.Call, s Start) (agent.ID, service.Outcome, error)
	// Ready checks that the call's run could start a manifest as its child now. It may wait for files.
	Ready(c *service.Call, manifest string) (Prepared, error)
	// Maker is the call of a run that has made a queue, outside of a transaction. It refuses one that does not run.
	Maker(id agent.ID, now time.Time) (*service.Call, error)
	// StartChild is Start for a queue that the call's run has made: what is started is its child.
	StartChild(c *service.Call, s Start, made Prepared) (agent.ID, service.Outcome, error)
	// Abort ends a run when the call is durable.
	Abort(id agent.ID, out *service.Outcome)
	// Pending are those that pay for the runs which were started for jobs and do not execute yet.
	Pending(tx *store.KernelTx) ([]starts.Pays, error)
}

// Prepared is what Ready has checked.
type Prepared interface {
	Digest() string // of the manifest
}

// Start is a run to be started for a job.
type Start struct {
	Owner            uint32
	Manifest, Digest string
	Job              string
	Input            json.RawMessage
	Blob             *api.Blob // behind Input; nil: none
	Deadline         time.Time // zero: none
}

// End is how a run that was started for a job has ended.
type End struct {
	Run    agent.ID
	Why    string // it failed; empty: it did not
	Again  bool   // with Why: it was not started, and may be later
	Output string
	Result json.RawMessage // what it gave with agent.result
}

// Begin starts runs for the ready jobs of queues that have a manifest. again is when there is more to do; zero: a
// change will bring it.
func (j *Jobs) Begin(e *service.Engine) (again time.Time, err error) {
	refused := map[string]bool{} // queues, by their keys
	for {
		var q *Queue
		err := e.Read(func(tx *store.KernelTx) (err error) {
			q, err = j.first(tx, e.Now(), refused)
			return err
		})
		if err != nil || q == nil {
			if len(refused) > 0 {
				again = e.Now().Add(starts.TryAgain)
			}
			return again, err
		}
		if err := j.beginOf(e, q, refused); err != nil {
			refused[Queues.Key(q)] = true
			if why := api.ErrorOf(err); why.Code != api.CodeInternal && why.Code != api.CodeStorage && why.Message != q.Why {
				if err := j.noteWhy(e, q, why.Message); err != nil {
					return again, err
				}
			}
		}
	}
}

// first is the queue whose turn it is, without those that were refused; nil: none can start anything.
func (j *Jobs) first(tx *store.KernelTx, now time.Time, refused map[string]bool) (*Queue, error) {
	all, _, err := j.startable(tx, now)
	for _, q := range all {
		if !refused[Queues.Key(q)] {
			return q, err
		}
	}
	return nil, err
}

// beginOf starts a run for the next job of a queue, if its turn has not changed meanwhile. An error is why it did not:
// then nothing is kept of the attempt.
func (j *Jobs) beginOf(e *service.Engine, q *Queue, refused map[string]bool) (err error) {
	var maker *service.Call
	var made Prepared
	if q.Maker != "" {
		if maker, err = j.Starter.Maker(q.Maker, e.Now()); err == nil {
			made, err = j.Starter.Ready(maker, q.Manifest)
		}
		if err != nil {
			return err
		}
	}
	return e.Within(agent.Run{}, "jobs", "", func(c *service.Call) (out service.Outcome, err error) {
		now, err := j.first(c.Tx, c.Now, refused)
		if err != nil || now == nil || Queues.Key(now) != Queues.Key(q) || now.Maker != q.Maker || now.Digest != q.Digest {
			return out, err // the next look finds what it is
		}
		start := func(s Start) (agent.ID, service.Outcome, error) { return j.Starter.Start(c, s) }
		if maker != nil {
			start = func(s Start) (agent.ID, service.Outcome, error) {
				own := *c
				own.Caller = maker.Caller
				own.ID = c.ID
				return j.Starter.StartChild(&own, s, made)
			}
		}
		return out, j.begin(c, now, start, &out)
	})
}

// noteWhy keeps why nothing is started for a queue.
func (j *Jobs) noteWhy(e *service.Engine, q *Queue, why string) error {
	return e.Within(agent.Run{}, "jobs", "", func(c *service.Call) (out service.Outcome, err error) {
		now, err := Queues.Get(c.Tx, Queues.Key(q))
		if err != nil || now == nil {
			return out, err
		}
		now.Why = why
		return out, Queues.Put(c.Tx, now)
	})
}

// startable are the queues of which a job can be started now, the one whose turn it is first.
func (j *Jobs) startable(tx *store.KernelTx, now time.Time) (able []*Queue, again time.Time, err error) {
	pending, err := j.Starter.Pending(tx)
	if err != nil {
		return nil, again, err
	}
	all, err := Queues.Indexed(tx, withManifest, "yes")
	if err != nil {
		return nil, again, err
	}
	able, err = starts.Able(all, pending, func(q *Queue) (bool, error) {
		_, err := next(tx, q, now)
		if err == service.ErrNotYet {
			return false, nil
		}
		return err == nil, err
	})
	return able, again, err
}

// Pays is for starts.For.
func (q *Queue) Pays() starts.Pays { return starts.Pays{Owner: q.Owner, Namespace: q.Namespace} }

// LastTurn is for starts.For.
func (q *Queue) LastTurn() uint64 { return q.Turn }

// begin starts a run for the next job of a queue.
func (j *Jobs) begin(c *service.Call, q *Queue, start func(Start) (agent.ID, service.Outcome, error), out *service.Outcome) error {
	m, err := next(c.Tx, q, c.Now)
	if err != nil {
		return err
	}
	id, started, err := start(Start{Owner: q.Owner, Manifest: q.Manifest, Digest: q.Digest, Job: m.ID, Input: body(m), Blob: m.Blob, Deadline: m.Work.Deadline})
	if err != nil {
		return err
	}
	all, err := Queues.Indexed(c.Tx, withManifest, "yes")
	if err != nil {
		return err
	}
	q.Turn, q.Why = starts.Turn(all), ""
	out.Add(started)
	entry := c.Entry("job.start", about(q.Name, m)+" in "+string(id), "allow")
	entry.Owner, entry.Namespace = q.Owner, q.Namespace
	j.changed(out, m.Work.Deadline)
	return cmp.Or(lease.Hold(c.Tx, m, id, time.Time{}, c.Now), Queues.Put(c.Tx, q), service.Record(c.Tx, entry))
}

// Ended does what follows for a job from the end of the run that was started for it: it is done, or it comes back.
// A run that has completed or failed its job itself, or whose job was cancelled, changes nothing more.
func (j *Jobs) Ended(c *service.Call, job string, e End) (out service.Outcome, err error) {
	m, b, err := lease.Job(c.Tx, job, func(*lease.Box) bool { return true })
	if err != nil {
		return out, err
	}
	j.changed(&out, c.Now) // there is a place for another start
	if m == nil || m.Work.Holder != e.Run {
		return out, nil
	}
	m.Work.Output = e.Output
	verdict := "allow"
	switch {
	case e.Again:
		err = lease.Undo(c.Tx, m, e.Why, c.Now.Add(starts.TryAgain).UTC())
	case e.Why != "":
		err, verdict = lease.Return(c.Tx, m, e.Why, c.Now), "deny"
	default:
		if lease.CheckResult(&e.Result) != nil {
			e.Result = nil
		}
		err = lease.Finish(c.Tx, m, e.Result, nil, c.Now)
	}
	entry := c.Entry("job.end", about(b.Name, m), verdict)
	entry.Owner, entry.Namespace, entry.Reason = b.Owner, b.Namespace, e.Why
	j.changed(&out, m.Work.Next(), m.Box)
	return out, cmp.Or(err, service.Record(c.Tx, entry))
}
