package runtime

import (
	"context"
	"errors"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/undo"
	"clove.run/clove/rootfs"
	"clove.run/clove/store"
)

// Run launches the agent, supervises it to its end and returns its record. An
// error means that nothing was made, and so nothing recorded: the request was
// wrong, or this host cannot hold it. Everything that fails later is in the
// record. Ending ctx stops the agent: TERM, its grace, then KILL.
func (r *Runtime) Run(ctx context.Context, spec agent.Spec, streams IO) (agent.Record, error) {
	l := &launch{runtime: r, spec: spec, streams: streams, trace: newTrace(streams)}
	if err := l.prepare(); err != nil {
		return agent.Record{}, err
	}
	go l.facts.cgroups.Anticipate() // the wait passes while the root is being built
	l.network = anticipateNetwork(spec)
	if err := l.register(); err != nil {
		return agent.Record{}, errors.Join(err, l.network.abandon())
	}
	// From here on the run is known and ends with a record, whatever happens.
	signals := listen()
	defer signals.stop()
	var seen outcome
	if err := l.bringUp(ctx.Done(), signals); err != nil {
		seen = outcome{startError: err}
	} else {
		seen = l.supervise(ctx, signals)
	}
	record, err := l.settle(seen, signals)
	if err == nil && streams.Ended != nil {
		streams.Ended(record)
	}
	return record, err
}

// settle ends the run, as far as that is possible.
func (l *launch) settle(seen outcome, signals *signals) (agent.Record, error) {
	if hung := (hungError{}); errors.As(seen.startError, &hung) {
		return l.abandon(hung.error)
	}
	return l.finish(seen, signals)
}

// prepare checks everything that can be checked before anything is made.
func (l *launch) prepare() (err error) {
	began := time.Now()
	l.facts = gatherFacts(l.runtime.init, l.runtime.paths.Run)
	if l.facts.cgroupsErr != nil {
		return l.facts.cgroupsErr
	}
	if l.held, err = enforce(l.spec, l.facts); err != nil {
		return err
	}
	if l.filter, err = profile(l.spec); err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--seccomp", Message: "cannot use " + l.spec.Seccomp.Profile,
			Hint: "name standard, strict or unconfined, or give a file in docker's JSON format", Err: err}
	}
	if l.spec.Gated() {
		if l.rules, err = rulesOf(l.spec, l.streams.Owner); err != nil {
			return err
		}
	}
	root := rootConfig(l.runtime.paths, l.spec, agent.FirstHostID)
	if owner := l.streams.Owner; owner.UID != 0 {
		// Without supplementary groups: nobody knows them any more when a run
		// starts again by itself.
		root.WorkspaceOf = &nsthread.Identity{UID: owner.UID, GID: owner.GID}
	}
	if root.ResolvConf, root.Hosts, err = networkFiles(l.spec); err != nil {
		return &agent.Error{Step: "network", Message: "cannot read the host's network files", Err: err}
	}
	if l.plan, err = rootfs.NewPlan(root); err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "files", Message: "cannot build the root", Err: err}
	}
	l.trace.step("prepare", began)
	return nil
}

// register makes the run directory and enters the run in the store, in this
// order: a run in the store whose directory nobody holds is a dead one.
func (l *launch) register() (err error) {
	began := time.Now()
	var u undo.Stack
	defer u.Run()
	if l.dir, err = newRunDirectory(l.runtime.paths, l.spec.ID); err != nil {
		return agent.Failed("run directory", err)
	}
	u.Add("run directory", l.dir.remove)
	// gofail: var registerDirectory string
	// if err := failpoint(registerDirectory, ""); err != nil { return err }

	placement := l.facts.cgroups.Place(l.runtime.cgroupName(l.spec.ID))
	var dead []agent.Run
	var live map[agent.ID]bool
	enter := func(s *store.Store) (err error) {
		l.run, err = s.Begin(agent.Run{Spec: l.spec, Created: time.Now(), Lease: newLease(placement.Paths)})
		// cloved waits for the end of every supervisor, so a detached run leaves
		// the others alone: to look at each of many locks would hold the store up.
		if err == nil && !l.spec.Detached || agent.KindOf(err) == agent.KindConflict {
			var failed error
			dead, failed = l.runtime.dead(s)
			err = errors.Join(err, failed)
		}
		if err == nil && !l.spec.Detached {
			live, err = liveIDs(s)
		}
		return err
	}
	err = l.runtime.withStore(enter)
	if agent.KindOf(err) == agent.KindConflict && len(dead) > 0 {
		// Who has the name may be dead: then it is told as it is, lost.
		l.runtime.bury(dead) // what fails here is reported by `clove check`
		err = l.runtime.withStore(enter)
	}
	if err != nil {
		return agent.Failed("store", err)
	}
	u.Release()
	// gofail: var registered string
	// failpoint(registered, "")

	if l.run.Layer == "" {
		// A run that is started anew may have left one; nobody else will miss it.
		if err := rootfs.RemoveLayer(l.runtime.paths.layer(l.spec.ID)); err != nil {
			l.stale = err
		}
	}
	l.trace.step("register", began)
	if l.spec.Detached {
		return nil
	}
	began = time.Now()
	l.runtime.bury(dead) // what fails here is reported by `clove check`
	if tidied := l.runtime.tidy(live); tidied || len(dead) > 0 {
		l.trace.step("leftovers", began)
	}
	return nil
}
