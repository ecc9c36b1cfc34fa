package runtime

import (
	"errors"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/undo"
	"clove.run/clove/rootfs"
	"clove.run/clove/store"
)

// The steps before a run is known; those behind them are in steps.go.
const (
	stepPrepare  = "prepare"
	stepRegister = "register"
)

// perform is the whole start. From the moment in which the run is known it ends with a
// record, whatever happens.
func (l *launch) perform(begin func(step string) error) error {
	for _, s := range []startStep{{stepPrepare, (*launch).prepare}, {stepRegister, (*launch).enter}} {
		if err := begin(s.name); err != nil {
			return err
		}
		if err := s.do(l); err != nil {
			return err // its step is in it already
		}
	}
	return l.execute(begin)
}

// enter makes the run known. The steps that need no store begin meanwhile:
// the wait for the kernel's cgroup lock, and the network namespace.
func (l *launch) enter() error {
	go l.probes.cgroups.Anticipate() // the wait passes while the root is being built
	l.network = anticipateNetwork(l.spec)
	if err := l.register(); err != nil {
		return errors.Join(err, l.network.abandon())
	}
	l.undo.Add("network", l.network.abandon)
	// Set last: another goroutine that finds it set may read the fields above.
	l.known.Store(true)
	l.clearUp()
	return nil
}

// prepare checks everything that can be checked before anything is made.
func (l *launch) prepare() (err error) {
	began := time.Now()
	l.probes = gatherProbes(l.runtime.init, l.runtime.paths.Run)
	if l.probes.cgroupsErr != nil {
		return l.probes.cgroupsErr
	}
	if l.held, err = enforce(l.spec, l.probes); err != nil {
		return err
	}
	if err = l.runtime.paths.CheckAmounts(l.spec.Limits); err != nil {
		return err
	}
	if err = CheckExecSize(l.spec.Command, l.spec.Env, l.spec.Limits); err != nil {
		return err
	}
	if err = checkMeters(l.spec, l.probes.cgroups.Mode() == cgroups.ModeV2); err != nil {
		return err
	}
	if l.filters, err = filtersOf(l.spec); err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--seccomp", Message: "cannot use " + l.spec.Seccomp.Profile,
			Hint: "name standard, strict, minimal or unconfined, or give a file in docker's JSON format", Err: err}
	}
	if l.spec.Gated() {
		if l.rules, err = rulesOf(l.spec, l.streams.Owner); err != nil {
			return err
		}
	}
	if l.shadow, err = newShadowRecorder(l.spec, l.streams.Owner); err != nil {
		return err
	}
	root := rootConfig(l.runtime.paths, l.spec, agent.FirstHostID)
	if owner := l.streams.Owner; owner.UID != 0 {
		// Without supplementary groups: they are not stored, and a run that starts again
		// by itself must have the same rights.
		root.User = &nsthread.Identity{UID: owner.UID, GID: owner.GID}
	}
	if root.ResolvConf, root.Hosts, err = networkFiles(l.spec); err != nil {
		return &agent.Error{Step: "network", Message: "cannot read the host's network files", Err: err}
	}
	if l.plan, err = rootfs.NewPlan(root); err != nil {
		return planFailed(err)
	}
	if err = l.shadow.planPrograms(l.runtime.paths, root); err != nil {
		return err
	}
	if err = l.confine(); err != nil {
		return err
	}
	l.trace.step("prepare", began)
	return nil
}

// register makes the run directory and enters the run in the store, in this
// order: a run in the store whose directory is not locked counts as dead.
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

	if l.spec.Kernel.HasChildren() {
		if l.dir.children, err = listenForChildren(l.dir.path); err != nil {
			return agent.Failed("run directory", err)
		}
	}
	var dead []agent.Run
	var live map[agent.ID]bool
	enter := func(s *store.Store) (err error) {
		if l.placement, err = (kinship{l}).place(s); err != nil {
			return err
		}
		l.run, err = s.Begin(agent.Run{Spec: l.spec, Created: time.Now(), Lease: newLease(l.placement.Paths)})
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
		// The run of root's that has the name may be dead: then it is recorded as lost, and the name is free.
		named := slices.DeleteFunc(slices.Clone(dead), func(run agent.Run) bool { return run.Name() != agent.RunName{Name: l.spec.Name} })
		aside(func() { l.runtime.reap(named) }) // what fails here is reported by `clove check`
		// One more attempt, now that the name may be free.
		err = l.runtime.withStore(enter)
	}
	if err != nil {
		return agent.Failed("store", err)
	}
	u.Release()
	// gofail: var registered string
	// failpoint(registered, "")

	if l.run.Layer == "" {
		// The store may be an older copy, which does not know of the layer.
		_, l.stale = l.runtime.paths.releaseLayer(l.spec.ID)
	}
	l.stale = errors.Join(l.stale, l.runtime.paths.describeLog(l.run))
	l.leftovers = leftovers{dead, live}
	l.trace.step(stepRegister, began)
	return nil
}

// removeStale removes the layer that a fresh start does not continue with, before the store
// forgets it.
func (r *reaper) removeStale(run agent.Run) error {
	if !run.Queue.Fresh || run.State != agent.StateQueued {
		return nil // Begin says what is wrong
	}
	return removeLayer(r.paths.layer(run.Spec.ID))
}

// clearUp removes what killed cloves have left. cloved does it for a detached run.
func (l *launch) clearUp() {
	if l.spec.Detached {
		return
	}
	began, left := time.Now(), l.leftovers
	did := make(chan bool, 1)
	aside(func() {
		l.runtime.reap(left.dead) // what fails here is reported by `clove check`
		did <- l.runtime.tidy(left.live) || len(left.dead) > 0
	})
	select {
	case something := <-did:
		if !something {
			return
		}
	default: // it goes on
	}
	l.trace.step("leftovers", began)
}

// asidePatience bounds the wait of a start for the clean-up of other runs. A process that
// the kernel cannot kill delays that for much longer.
const asidePatience = time.Second

// aside runs f, and lets it go on beside the start where it takes long. This process's
// end is then f's.
func aside(f func()) {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(asidePatience):
	}
}
