package runtime

import (
	"context"
	"fmt"
	"slices"
	"time"

	libcgroups "github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/store"
)

// A run whose agent may start others has two things on the host for them: a tree of cgroups
// above its own, with its limits, so that they hold for the sum; and childrenSocket in its run
// directory, for as long as its agent lives.

// endChildren has the supervisors of all children end them.
func (d *runDirectory) endChildren() {
	if d != nil {
		d.children.close()
		d.children = nil
	}
}

// parent is the run whose agent started this one, as its supervisor sees it. nil: none did.
type parent struct {
	id      agent.ID
	name    string
	keep    bool              // its children go on without it
	cgroups map[string]string // its own, as in a lease
	link    link              // to its supervisor
	gone    chan struct{}     // closed at its end; nothing is sent if that cannot be seen
}

// parentOf finds the parent of a run that is about to begin; nil: it has none. It is an error if
// that does not live: nothing would end the run with it, or count what it uses.
func (r *site) parentOf(s *store.Store, run agent.Run) (*parent, error) {
	if run.Parent == "" {
		return nil, nil
	}
	above, err := s.Get(string(run.Parent))
	if agent.KindOf(err) == agent.KindNotFound || err == nil && above.Lease == nil {
		return nil, goneError(run)
	}
	if err != nil {
		return nil, err
	}
	p := &parent{id: run.Parent, name: above.Spec.Name, keep: above.Spec.Kernel.Orphans == agent.OrphansKeep,
		cgroups: above.Lease.Cgroups, gone: make(chan struct{})}
	if p.link, err = linkTo(r.paths.runDirectory(run.Parent)); err != nil {
		return nil, goneError(run)
	}
	return p, nil
}

// goneError refuses a start without a living parent.
func goneError(run agent.Run) error {
	return &agent.Error{Kind: agent.KindConflict, Step: agent.StepParent, Message: run.Spec.Name + " cannot start: " + run.ParentName() + ", which started it, does not live",
		Hint: "start that one; it may start this one again"}
}

// watch closes gone at the parent's end, or behind the launch.
func (p *parent) watch() {
	go func() {
		defer close(p.gone)
		p.link.wait()
	}()
}

// ended is the channel that watch closes; nil where there is no parent.
func (p *parent) ended() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.gone
}

// above is what a supervisor does for the runs above its own: it ends with its parent, and at its deadline.
type above struct{ *supervisor }

// onGone ends the agent at once, unless it may go on.
func (s above) onGone() {
	s.parentGone = nil
	if !s.parent.keep {
		s.end(causeParent, 0)
		return
	}
	// The parent may have been killed in a pause, and no one else would end that.
	if tree := cgroups.OpenTree(s.parent.cgroups); tree != nil {
		_ = tree.Thaw()
	}
}

// kinship is what a launch does for the runs above its own and below.
type kinship struct{ *launch }

// blameParent names the cause of an end that the parent's supervisor made: it kills its tree, and
// that may be quicker than the news of its end.
func (l kinship) blameParent(seen *outcome) {
	if l.parent == nil {
		return
	}
	seen.parent = l.parent.name
	if seen.cause != causeNone || !seen.launched || seen.exitKnown || seen.oomKills > 0 || l.parent.keep {
		return
	}
	select {
	case <-l.parent.gone:
		seen.cause = causeParent
	// One above the parent has killed the parent's agent too, and its supervisor is about to see that.
	case <-time.After(blamePatience):
	}
}

// blamePatience bounds the wait for the news of a parent's end after an end without a cause.
const blamePatience = 2 * time.Second

// place finds the place of a run that is about to begin, and its parent.
func (l kinship) place(s *store.Store) (cgroups.Placement, error) {
	run, err := s.Get(string(l.spec.ID))
	if agent.KindOf(err) == agent.KindNotFound {
		run, err = agent.Run{Spec: l.spec}, nil // it is new
	}
	if err != nil {
		return cgroups.Placement{}, err
	}
	if err := l.runtime.removeStale(run); err != nil {
		return cgroups.Placement{}, err
	}
	if err := overdue(run, time.Now()); err != nil {
		return cgroups.Placement{}, err
	}
	if l.parent != nil {
		_ = l.parent.link.close() // of an attempt before
	}
	if l.parent, err = l.runtime.parentOf(s, run); err != nil {
		return cgroups.Placement{}, err
	}
	family := cgroups.Family{Parent: l.spec.Kernel.HasChildren()}
	if l.parent != nil {
		family.Above = l.parent.cgroups
		if l.probes.cgroups, err = l.probes.cgroups.Beside(family.Above); err != nil {
			return cgroups.Placement{}, agent.Failed("cgroups", err)
		}
	}
	place, err := l.probes.cgroups.PlaceIn(l.runtime.cgroupName(l.spec.ID), family)
	return place, agent.Failed("cgroups", err)
}

// overdue refuses the start of a run whose deadline has passed.
func overdue(run agent.Run, now time.Time) error {
	if !run.Overdue(now) {
		return nil
	}
	return &agent.Error{Kind: agent.KindConflict, Step: agent.StepDeadline, Message: fmt.Sprintf("%s cannot start: its deadline was %s", run.Spec.Name, run.Deadline.UTC().Format(time.RFC3339)),
		Hint: "a run that an agent starts ends no later than that agent"}
}

// join gets the run its share of its parent's disk.
func (l kinship) join() error {
	if l.parent == nil {
		return nil
	}
	l.undo.Add("parent", l.parent.link.close)
	return l.parent.link.setAside(l.spec.Limits.DiskBytes, l.parent.name)
}

// makeTree makes the tree of a run that may have children, and takes an empty one back.
func (l kinship) makeTree() error {
	paths := l.run.Lease.Cgroups
	if len(cgroups.TreesAbove(paths)) == 0 {
		return nil
	}
	group, err := cgroups.Open(paths)
	if err != nil {
		return err
	}
	// The container removes its own cgroup before; this removes the trees that are empty then.
	l.undo.Add("tree", func() error { return group.Remove(context.Background()) })
	if cgroups.OpenTree(paths) == nil {
		return nil
	}
	if l.sum, err = l.probes.cgroups.MakeTree(paths); err != nil {
		return err
	}
	l.undo.Add("tree's pause", l.sum.Thaw)
	if err := l.limitTree(); err != nil {
		return err
	}
	if !l.held.lacks(agent.ControlDisk) {
		l.dir.children.setDisk(l.tree)
	}
	return nil
}

// limitTree gives the tree the run's own limits.
func (l kinship) limitTree() error {
	limits := l.spec.Limits
	for control, limit := range map[string]*int64{agent.ControlMemory: &limits.MemoryBytes, agent.ControlPids: &limits.Pids} {
		if l.held.lacks(control) {
			*limit = 0
		}
	}
	if l.held.lacks(agent.ControlCPU) {
		limits.CPUs = 0
	}
	swap := l.probes.cgroups.SwapAccounting() && !l.held.lacks(agent.ControlMemorySwap)
	resources, _ := resourcesBetween(agent.Limits{}, limits, swap)
	if !l.held.lacks(agent.ControlCPUSet) {
		resources.CpusetCpus = limits.CPUSet
	}
	m, err := manager.NewWithPaths(&libcgroups.Cgroup{Resources: resources}, l.sum.Paths())
	if err == nil {
		err = m.Apply(-1) // no process: v1's cpuset is filled from above
	}
	if err == nil {
		err = m.Set(resources)
	}
	if err != nil {
		return fmt.Errorf("cannot limit the agent and those that it starts together: %w", err)
	}
	return limitSockets(l.sum, l.spec.Limits, l.held, l.probes)
}

// end ends the children of a run that ends, and waits for their records: a restart must not
// meet them, and --rm forgets the parent last. One that hangs is left to its own supervisor.
func (l kinship) end() error {
	l.dir.endChildren()
	if l.sum == nil || l.spec.Kernel.Orphans == agent.OrphansKeep {
		return nil
	}
	err := killAll(l.sum)
	for deadline := time.Now().Add(familyPatience); time.Now().Before(deadline); time.Sleep(familyPause) {
		left := false
		serr := l.runtime.withStore(func(s *store.Store) error {
			live, err := s.Live(func(agent.ID) bool { return true })
			left = slices.ContainsFunc(live, func(run agent.Run) bool { return run.Descends(l.spec.ID) && l.runtime.supervised(run.Spec.ID) })
			return err
		})
		if serr != nil || !left {
			break
		}
	}
	return err
}

// familyPatience bounds the wait of a parent for the records of its children, whose agents are
// dead. There is no event for those without cloved.
const (
	familyPatience = 10 * time.Second
	familyPause    = 10 * time.Millisecond
)

// bind makes ready for the deadline, and for the parent's end.
func (l kinship) bind() (err error) {
	if l.parent != nil {
		l.parent.watch()
	}
	if l.run.Deadline.IsZero() {
		return nil
	}
	if err := overdue(l.run, time.Now()); err != nil {
		return err
	}
	if l.bound, err = boottime.New(); err == nil {
		l.undo.Add("deadline", l.bound.Close)
	}
	return err
}

// set arms the deadline. It was set on the wall clock; from here on it counts on
// CLOCK_BOOTTIME, which no one can set. The agent is asked to end before it, by its grace or by
// half of the time that is left.
func (s above) set() {
	left := time.Until(s.run.Deadline)
	s.notice = max(0, min(s.spec.Limits.StopGrace, left/2))
	s.bound.SetAfter(left - s.notice)
}

// due is the channel of the deadline; nil where there is none.
func (s above) due() <-chan struct{} {
	if s.bound == nil {
		return nil
	}
	return s.bound.Fired
}

// onDue ends the agent at its deadline.
func (s above) onDue() {
	if s.seen.cause == causeNone && s.began != 0 {
		allowed := time.Duration(boottime.NowNS()-s.began) + s.notice
		s.seen.bound = &allowed
	}
	s.end(causeDeadline, s.notice)
}
