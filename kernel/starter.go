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
	"clove.run/clove/kernel/mail"
	"clove.run/clove/kernel/names"
	"clove.run/clove/kernel/service"
	"clove.run/clove/kernel/spawn"
	"clove.run/clove/kernel/starts"
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
	m, err := spawn.Held(tx, owner, manifest, namespace)
	if err != nil {
		return "", "", err
	}
	return m.Digest, m.Spec.Kernel.Namespace, nil
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

func (s starter) Pending(tx *store.KernelTx) ([]starts.Pays, error) {
	pays, err := pending(s.launcher, tx, ofJob)
	parents, perr := s.launcher.PendingChildren(tx)
	for _, run := range parents {
		pays = append(pays, starts.Pays{Owner: run.Owner.UID, Namespace: run.Spec.Kernel.Namespace})
	}
	return pays, cmp.Or(err, perr)
}

// pending are those that pay for runs which do not execute yet; kind begins what these are for.
func pending(l *spawn.Launcher, tx *store.KernelTx, kind string) (pays []starts.Pays, err error) {
	all, err := l.Pending(tx, func(start *spawn.Start) bool { return strings.HasPrefix(start.For, kind) })
	for _, start := range all {
		pays = append(pays, starts.Pays{Owner: start.Owner, Namespace: start.Namespace})
	}
	return pays, err
}

// waker starts runs for names that mail is to wake: a names.Starter.
type waker struct{ launcher *spawn.Launcher }

// ofName begins what a start for a name is for; behind it is the name's key.
const ofName = "name/"

func (w waker) Digest(tx *store.KernelTx, owner uint32, manifest, namespace string) (digest, of string, err error) {
	m, err := spawn.Held(tx, owner, manifest, namespace)
	if err != nil {
		return "", "", err
	}
	if !m.Spec.Kernel.HasSocket() {
		return "", "", api.Failure(api.CodeConflict, "add agent_socket: true to it", "an agent of the manifest %s has no socket of its own, and receives no mail", manifest)
	}
	return m.Digest, m.Spec.Kernel.Namespace, nil
}

func (w waker) Start(c *service.Call, r *names.Row, key string) (service.Outcome, error) {
	_, out, err := w.launcher.Launch(c, spawn.Launch{Owner: r.Owner, Manifest: r.Manifest, Digest: r.Digest, For: ofName + key})
	return out, err
}

func (w waker) Starting(tx *store.KernelTx, key string) (bool, error) {
	return spawn.Starting(tx, ofName+key)
}

func (w waker) Pending(tx *store.KernelTx) ([]starts.Pays, error) {
	return pending(w.launcher, tx, ofName)
}

// takeName gives a run that was started for a name that name, with the mail which waits for it.
func (k *Kernel) takeName(c *service.Call, out *service.Outcome) error {
	start, err := spawn.Starts.Get(c.Tx, string(c.Run.Spec.ID))
	if err != nil || start == nil {
		return err
	}
	key, is := strings.CutPrefix(start.For, ofName)
	if !is {
		return nil
	}
	name, err := k.names.Take(c, key)
	if err != nil || name == "" {
		return err
	}
	return mail.Collect(c, name, out)
}

// keepLetters keeps for a name the dead letters of a run that clove has started, and removes with its end.
func (k *Kernel) keepLetters(tx *store.KernelTx, run agent.ID, r *names.Row) error {
	start, err := spawn.Starts.Get(tx, string(run))
	if err != nil || start == nil {
		return err
	}
	return mail.KeepLetters(tx, run, r.Owner, r.Namespace, r.Name)
}

// failed says why a run that clove has started has failed; empty: it did not. again: it was not started, and may be
// later.
func failed(end spawn.End, refused error) (why string, again bool) {
	r := end.Record
	switch {
	case refused != nil:
		return cmp.Or(agent.FailureOf(refused).Message, "it was refused"), api.ErrorOf(refused).Code == api.CodeBusy
	case r.Status == agent.StatusIdle: // that it waited is no failure
	case r.ExitCode != 0 || r.Status != agent.StatusExited:
		why = fmt.Sprintf("its run ended: %s, exit status %d", r.Status, r.ExitCode)
		if r.Error != nil {
			why += ": " + r.Error.Message
		}
	}
	return why, false
}

// startEnded passes the end of a run that clove has started itself to the service for which it was.
func (k *Kernel) startEnded(c *service.Call, start *spawn.Start, end spawn.End, refused error) (out service.Outcome, err error) {
	why, again := failed(end, refused)
	if job, is := strings.CutPrefix(start.For, ofJob); is {
		return k.jobs.Ended(c, job, jobs.End{Run: start.ID, Why: why, Again: again, Output: end.Output, Result: end.Result})
	}
	if key, is := strings.CutPrefix(start.For, ofName); is {
		return k.names.Ended(c, key, why, again)
	}
	return out, nil
}
