package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/rootfs"
)

// Check compares the store with processes, cgroups, mounts and directories.
// It changes nothing.
func (r *Runtime) Check() ([]Problem, error) {
	problems, err := r.audit()
	if err != nil {
		return nil, err
	}
	view, err := r.look()
	// A second look only where the first found something: a sound host is not slowed down.
	if err == nil && len(view.orphans())+len(view.lost)+len(view.stuck) > 0 {
		err = r.lookAgain(&view)
	}
	if err != nil {
		return nil, err
	}
	problems = append(problems, r.displaced()...)
	for _, run := range view.lost {
		problems = append(problems, lostRun(run))
	}
	for _, run := range view.dead {
		problems = append(problems, Problem{Kind: ProblemRun, Subject: string(run.Spec.ID), Message: run.Spec.Name + " is " + string(run.State) + ", but its supervisor is gone"})
	}
	abandoned, err := rootfs.AbandonedTemplates(r.paths.State)
	return slices.Concat(problems, view.stuck, view.orphans(), view.creates, view.mounts, view.unclaimed, templates(abandoned, templateAbandoned), r.Lost()),
		agent.Failed("templates", err)
}

const (
	templateAbandoned = "the process that made this template was killed"
	templateUnused    = "no run has used this template for a month"
)

func templates(names []string, message string) []Problem {
	var problems []Problem
	for _, name := range names {
		problems = append(problems, Problem{Kind: ProblemTemplate, Subject: name, Message: message})
	}
	return problems
}

// GC removes what Check finds, apart from contradictions inside the store, mounts and OCI
// containers, and templates that no run uses. Layers and logs without a record are moved to lost/. It ends
// the agents that cannot be reached any more, and touches nothing that clove did not make.
func (r *Runtime) GC() ([]Problem, error) {
	view, err := r.look()
	if err == nil && len(view.lost) > 0 {
		err = r.lookAgain(&view)
	}
	if err != nil {
		return nil, err
	}
	failure := endLost(view.lost)
	removed, err := r.Clean()
	return removed, errors.Join(failure, err)
}

// Clean is GC for callers that may not end anything that lives.
func (r *Runtime) Clean() ([]Problem, error) {
	view, err := r.look()
	if err != nil {
		return nil, err
	}
	removed, err := r.reap(view.dead)
	failures := []error{err, errStuck(view.stuck), r.finishRemovals()}
	for _, p := range view.orphans() {
		kept, err := r.sweep(p, view.cgroups)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if kept != "" {
			p.Message += ": it is kept as " + kept
		}
		removed = append(removed, p)
	}
	abandoned, unused, err := rootfs.SweepTemplates(r.paths.State, time.Now())
	removed = slices.Concat(removed, templates(abandoned, templateAbandoned), templates(unused, templateUnused))
	return removed, errors.Join(append(failures, err)...)
}

// sweep removes one orphan, or keeps it: then it returns under which name.
func (r *reaper) sweep(p Problem, h *cgroups.Host) (kept string, err error) {
	switch p.Kind {
	case ProblemCgroup:
		return "", r.whileClaimed(agent.ID(p.Subject), func(agent.Run) error { return removeCgroups(h.Find(r.cgroupName(agent.ID(p.Subject)))) })
	case ProblemCommand:
		return "", r.endCommandsOn(h, agent.ID(p.Subject))
	case ProblemDir:
		return "", r.whileClaimed(agent.ID(p.Subject), nil)
	case ProblemSpool:
		return "", absentIsFine(os.Remove(filepath.Join(string(r.paths.Spools()), p.Subject)))
	case ProblemGate:
		return "", killGate(p.Subject)
	}
	// The remaining kinds are a layer and a log. The claim keeps away from those of an agent
	// that lives, although the store has lost it.
	id := agent.ID(strings.TrimSuffix(p.Subject, layerSuffix))
	err = r.whileClaimed(id, func(run agent.Run) (err error) {
		switch { // it may have got a record meanwhile
		case p.Kind == ProblemLog && run.Spec.ID == "":
			kept, err = r.paths.releaseLog(id)
		case p.Kind == ProblemLayer && run.Layer == "":
			kept, err = r.paths.releaseLayer(id)
		}
		return err
	})
	return kept, err
}
