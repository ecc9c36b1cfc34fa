package kernel

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/jobs"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/spawn"
	"clove.run/clove/store"
)

// starter starts runs for jobs: a jobs.Starter.
type starter struct {
	launcher *spawn.Launcher
	spawn    *spawn.Spawn
}

// ofJob begins what a start for a job is for; behind it is the job's id.
const ofJob = "job/"

func (s starter) Digest(tx *store.KernelTx, owner uint32, manifest, namespace string) (digest, of string, err error) {
	return spawn.Held(tx, owner, manifest, namespace)
}

func (s starter) Start(c *service.Call, l jobs.Start) (agent.ID, service.Outcome, error) {
	return s.launcher.Launch(c, spawn.Launch{Owner: l.Owner, Manifest: l.Manifest, Digest: l.Digest, For: ofJob + l.Job, Input: l.Input, Blob: l.Blob, Deadline: l.Deadline})
}

func (s starter) Ready(c *service.Call, manifest string) (jobs.Prepared, error) {
	made, err := s.spawn.Ready(c, manifest)
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (s starter) Maker(id agent.ID, now time.Time) (*service.Call, error) {
	run, found := agent.Run{}, false
	if s.spawn.Runs != nil {
		run, found = s.spawn.Runs.Get(id)
	}
	if !found || run.State != agent.StateRunning {
		return nil, api.Failure(api.CodeConflict, "", "the agent that has made the queue does not run")
	}
	return &service.Call{Caller: service.Caller{Run: run, Agent: true, UID: run.Owner.UID}, Context: context.Background(), Now: now}, nil
}

func (s starter) StartChild(c *service.Call, l jobs.Start, made jobs.Prepared) (agent.ID, service.Outcome, error) {
	return s.spawn.StartChild(c, spawn.ForJob{Made: made.(*spawn.Prepared), Launch: spawn.Launch{Owner: l.Owner, Manifest: l.Manifest, Digest: l.Digest, For: ofJob + l.Job, Input: l.Input, Blob: l.Blob, Deadline: l.Deadline}})
}

func (s starter) Abort(id agent.ID, out *service.Outcome) {
	s.launcher.Abort(id, "its job was cancelled", out)
}

func (s starter) Pending(tx *store.KernelTx) (pending []jobs.Pending, err error) {
	all, err := s.launcher.Pending(tx, func(start *spawn.Start) bool { return strings.HasPrefix(start.For, ofJob) })
	for _, start := range all {
		pending = append(pending, jobs.Pending{Owner: start.Owner, Namespace: start.Namespace})
	}
	parents, perr := s.launcher.PendingChildren(tx)
	for _, run := range parents {
		pending = append(pending, jobs.Pending{Owner: run.Owner.UID, Namespace: run.Spec.Kernel.Namespace})
	}
	return pending, cmp.Or(err, perr)
}

// startEnded passes the end of a run that clove has started itself to the service for which it was.
func (k *Kernel) startEnded(c *service.Call, start *spawn.Start, end spawn.End, refused error) (out service.Outcome, err error) {
	job, is := strings.CutPrefix(start.For, ofJob)
	if !is {
		return out, nil
	}
	e := jobs.End{Run: start.ID, Output: end.Output, Result: end.Result}
	r := end.Record
	switch {
	case refused != nil:
		e.Why = cmp.Or(agent.FailureOf(refused).Message, "it was refused")
		e.Again = api.ErrorOf(refused).Code == api.CodeBusy
	case r.ExitCode != 0 || r.Status != agent.StatusExited:
		e.Why = fmt.Sprintf("its run ended: %s, exit status %d", r.Status, r.ExitCode)
		if r.Error != nil {
			e.Why += ": " + r.Error.Message
		}
	}
	return k.jobs.Ended(c, job, e)
}
