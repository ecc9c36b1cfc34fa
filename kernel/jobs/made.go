package jobs

import (
	"cmp"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// opens are the stages of queue.open: the name of the queue needs a grant, and so does the manifest.
var opens = service.Stages[api.QueueOpenParams]{About: func(p api.QueueOpenParams) string { return scopePrefix + p.Queue },
	Covers: func(p api.QueueOpenParams) []string {
		all := []string{string(grant.Name) + ":" + scopePrefix + p.Queue}
		if p.Manifest != "" {
			all = append(all, string(grant.Spawn)+":"+p.Manifest)
		}
		return all
	}}

// prepareOpen checks that the call's run could start the manifest, as agent.spawn does.
func (j *Jobs) prepareOpen(c *service.Call, p api.QueueOpenParams) (Prepared, error) {
	if p.Manifest == "" {
		return nil, nil
	}
	return j.Starter.Ready(c, p.Manifest)
}

// open makes a queue of the call's run. What a user or another run has made it does not touch.
func (j *Jobs) open(c *service.Call, p api.QueueOpenParams, made Prepared) (result api.QueueResult, out service.Outcome, err error) {
	if err := checkName(p.Queue); err != nil {
		return result, out, err
	}
	own := c.Run.Spec.ID
	q := &Queue{Owner: c.Run.Owner.UID, Namespace: c.Run.Spec.Kernel.Namespace, Name: p.Queue, Manifest: p.Manifest, Maker: own, Opened: c.Now.UTC()}
	err = q.set(api.QueueAddParams{Manifest: p.Manifest, Concurrency: p.Concurrency, Attempts: p.Attempts, BackoffMS: p.BackoffMS, LeaseMS: p.LeaseMS})
	if err != nil {
		return result, out, err
	}
	switch {
	case made != nil:
		q.Digest = made.Digest()
	case p.Manifest != "":
		return result, out, api.Failure(api.CodeParams, "open the queue by itself", "no other call carries one that opens a queue with a manifest")
	}
	old, err := Queues.Get(c.Tx, Queues.Key(q))
	if err == nil && old != nil && old.Maker != own {
		err = api.Failure(api.CodeConflict, "choose another name", "there is a queue %s, which this run has not made", q.Name)
	}
	mine, merr := Queues.Indexed(c.Tx, byMaker, string(own))
	if err = cmp.Or(err, merr); err == nil && old == nil && len(mine) >= madeMost {
		err = api.Failure(api.CodeBusy, "close some", "the run has made %d queues", madeMost)
	}
	if err != nil {
		return result, out, err
	}
	if old != nil {
		q.Turn = old.Turn
	}
	if err := Queues.Put(c.Tx, q); err != nil {
		return result, out, err
	}
	out.About = scopePrefix + q.Name
	if q.Manifest != "" {
		out.About += " " + q.Manifest + "@" + q.Digest
	}
	j.changed(&out, c.Now, q.box().ID())
	result.Queue, err = shownQueue(c.Tx, q)
	return result, out, err
}

// closeQueue removes a queue of the call's run. One of a user's or another run's is as one that there is not.
func (j *Jobs) closeQueue(c *service.Call, p api.QueueCloseParams) (none api.Nothing, out service.Outcome, err error) {
	out.About = scopePrefix + p.Queue
	q, err := Queues.Get(c.Tx, queueKey(c.Run.Owner.UID, c.Run.Spec.Kernel.Namespace, p.Queue))
	if err == nil && (q == nil || q.Maker != c.Run.Spec.ID) {
		err = api.Failure(api.CodeNotFound, "name one that the run has opened", "the run has made no queue %.64q", p.Queue)
	}
	if err != nil {
		return none, out, err
	}
	return none, out, j.remove(c.Tx, q, &out)
}

// endMade ends the queues that a run has made before a moment, zero: all. It has ended. Those that have jobs stay for
// people, and for its next life, which opens them again.
func (j *Jobs) endMade(tx *store.KernelTx, run agent.ID, until time.Time, out *service.Outcome) error {
	all, err := Queues.Indexed(tx, byMaker, string(run))
	for _, q := range all {
		if err != nil {
			return err
		}
		if !until.IsZero() && q.Opened.After(until) {
			continue
		}
		var b *lease.Box
		if b, err = lease.Boxes.Get(tx, q.box().ID()); err == nil && (b == nil || b.Messages+b.Dead == 0) {
			err = j.remove(tx, q, out)
			continue
		}
		q.Closed, q.Why = true, "the agent that has made it has ended"
		err = cmp.Or(err, Queues.Put(tx, q))
	}
	return err
}
