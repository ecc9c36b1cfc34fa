//go:build root

package integration

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/linear"
)

const (
	// callLease is short enough to end while cloved is away, and long enough for most jobs to be completed.
	callLease = 400 * time.Millisecond
	// lastQueue has jobs that agents hold when they end.
	lastQueue = "last"
)

func (c *caller) job(op linear.JobOp, id string) madeCall {
	return madeCall{Caller: c.number, Job: &linear.JobInput{Op: op, ID: id, By: c.name, Lease: callLease}}
}

// keepJob keeps a call about a job with its times.
func (c *caller) keepJob(made madeCall) {
	made.Job.Call, made.Job.Return = time.Duration(made.Call), time.Duration(made.Return)
	c.done = append(c.done, made)
}

func (c *caller) addJob() error {
	made := c.job(linear.JobAdd, "")
	var result api.JobResult
	if err := c.change(&made, agents.JobAdd.Name, map[string]any{"queue": c.word, "body": c.number}, &result); err != nil {
		return err
	}
	made.Job.ID = result.Job.ID
	c.jobs = append(c.jobs, made.Job.ID) // another run will hold it, or none
	c.keepJob(made)
	return nil
}

// claimJob takes a job of the round's queue, or of another; with none there is nothing to explain.
func (c *caller) claimJob(queue string) error {
	made := c.job(linear.JobClaim, "")
	var result api.JobResult
	err := c.change(&made, agents.JobClaim.Name, map[string]any{"queue": queue, "within_ms": 1}, &result)
	if isRefusal(err, api.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	made.Job.ID, made.JobSaid.Attempts = result.Job.ID, result.Job.Attempts
	c.jobs = append(c.jobs, made.Job.ID)
	c.keepJob(made)
	return nil
}

// workOn renews, gives back or completes a job that the caller has claimed or added, which it may not hold. Most
// completions charge one and send a message in the same call: see ackThen.
func (c *caller) workOn() error {
	if len(c.jobs) == 0 {
		return c.claimJob(c.word)
	}
	id := c.jobs[max(0, len(c.jobs)-1-c.dice.IntN(4))]
	op := []linear.JobOp{linear.JobRenew, linear.JobFail, linear.JobComplete, linear.JobComplete, linear.JobComplete}[c.dice.IntN(5)]
	made, to := c.job(op, id), c.dice.IntN(len(c.agents))
	params := map[string]any{"id": id}
	method := map[linear.JobOp]string{linear.JobRenew: agents.JobRenew.Name, linear.JobFail: agents.JobFail.Name, linear.JobComplete: agents.JobComplete.Name}[op]
	carries := op == linear.JobComplete && c.dice.IntN(4) > 0
	switch {
	case op == linear.JobFail:
		params["why"] = "another try"
	case carries:
		params["then"] = c.accounting(to)
	}
	var result api.JobCompleteResult
	err := c.change(&made, method, params, &result)
	if made.JobSaid.Refused = isRefusal(err, api.CodeNotFound); err != nil && !made.JobSaid.Refused {
		return err
	}
	c.keepJob(made)
	if made.JobSaid.Refused || !carries {
		return nil
	}
	return c.keepCarried(made, result.Results, to)
}

// queue makes the queue of a round, or another.
func (s *calling) queue(name string) {
	s.t.Helper()
	s.api(methods.QueueAdd.Name, map[string]any{"name": name, "attempts": 100, "backoff_ms": 1, "lease_ms": callLease.Milliseconds()}, nil)
}

// jobsOf are all jobs of a queue.
func (s *calling) jobsOf(queue string) (all []api.Job) {
	s.t.Helper()
	for after := ""; ; {
		var part api.JobsListResult
		s.api(methods.JobsList.Name, map[string]any{"queue": queue, "after": after}, &part)
		all = append(all, part.Jobs...)
		if after = part.Next; after == "" {
			return all
		}
	}
}

// afterJobs asks for all jobs of a round when no call is in flight, as the last operations of the history, and removes
// their queue.
func (s *calling) afterJobs(queue string, history []porcupine.Operation) []porcupine.Operation {
	s.t.Helper()
	call := monotonic()
	all := s.jobsOf(queue)
	back := monotonic()
	holders := map[string]string{}
	for _, name := range s.names {
		var run api.RunResult
		s.api(methods.RunGet.Name, map[string]any{"run": name}, &run)
		holders[string(run.Run.Spec.ID)] = name
	}
	shown := map[string]bool{}
	for _, j := range all {
		shown[j.ID] = true
		history = append(history, porcupine.Operation{ClientId: callingAgents * callersEach, Call: call, Return: back,
			Input:  linear.JobInput{Op: linear.JobShow, ID: j.ID, Lease: callLease, Call: time.Duration(call), Return: time.Duration(back)},
			Output: linear.JobOutput{Attempts: j.Attempts, Holder: holders[string(j.Holder)], Done: j.State == api.JobDone}})
	}
	for _, o := range history {
		if id := o.Input.(linear.JobInput).ID; !shown[id] {
			s.t.Errorf("the job %s is lost", id)
			shown[id] = true
		}
	}
	s.removeQueue(queue, all)
	return history
}

func (s *calling) removeQueue(queue string, all []api.Job) {
	s.t.Helper()
	for _, j := range all {
		if j.State != api.JobDone {
			s.api(methods.JobsCancel.Name, map[string]any{"id": j.ID}, nil)
		}
	}
	s.api(methods.QueueRemove.Name, map[string]any{"name": queue}, nil)
}

// holdLast has each agent hold a job, to end with it.
func (s *calling) holdLast() {
	s.t.Helper()
	s.api(methods.QueueAdd.Name, map[string]any{"name": lastQueue, "backoff_ms": time.Hour.Milliseconds(), "lease_ms": time.Hour.Milliseconds()}, nil)
	for i, r := range s.agents {
		s.api(methods.JobsAdd.Name, map[string]any{"queue": lastQueue, "body": i}, nil)
		if err := json.NewEncoder(r.stdin).Encode(lastQueue); err != nil {
			s.t.Fatal(err)
		}
		for line := r.line(); line != "done"; line = r.line() {
			var made madeCall
			if err := json.Unmarshal([]byte(line), &made); err != nil {
				s.t.Fatalf("%q: %v\n%s", line, err, &r.stderr)
			}
			s.count(made)
		}
	}
	held := 0
	for _, j := range s.jobsOf(lastQueue) {
		if j.State == api.JobHeld {
			held++
		}
	}
	if held != len(s.agents) {
		s.t.Errorf("control: %d of %d agents hold a job", held, len(s.agents))
	}
}

// lastComeBack waits until no job is held by an agent that has ended.
func (s *calling) lastComeBack() {
	s.t.Helper()
	var all []api.Job
	for deadline := time.Now().Add(patience()); ; time.Sleep(10 * time.Millisecond) {
		all = s.jobsOf(lastQueue)
		held := slices.ContainsFunc(all, func(j api.Job) bool {
			return j.State != api.JobDelayed || j.Attempts != 1 || j.Why != "its holder ended"
		})
		if !held || time.Now().After(deadline) {
			if held || len(all) != callingAgents {
				s.t.Errorf("the jobs of agents that have ended: %+v", all)
			}
			break
		}
	}
	s.removeQueue(lastQueue, all)
}
