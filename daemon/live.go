package daemon

import (
	"encoding/json"
	"errors"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/policies/settings"
	"clove.run/clove/scheduler"
)

// live serves the methods that a live run's supervisor answers.
type live struct {
	cache       *cache
	records     records
	limits      admissionRules
	memory      memory
	supervisors supervisors
	result      func(agent.ID) (api.RunResult, error) // the run as it is now
}

func (r live) methods() []handler {
	return []handler{
		on(methods.RunPause, r.pause),
		on(methods.RunResume, r.resume),
		on(methods.RunUpdate, r.update),
		on(methods.RunStats, r.stats),
		onLater(methods.RunProcesses, r.processes),
	}
}

// pause freezes a run, and stores that for the list of runs.
func (r live) pause(c *request, p api.RunParams) (api.Nothing, error) {
	if err := r.supervisors.ask(c, c.run, methods.RunPause.Name, p, nil); err != nil {
		return api.Nothing{}, err
	}
	// gofail: var pauseAsked string
	// if err := failpoint(pauseAsked, ""); err != nil { return api.Nothing{}, err }

	_, err := r.records.amend(c.run.Spec.ID, agent.RunPaused, c.peer.String(), func(run *agent.Run) { run.SetPaused(true) })
	if err != nil {
		// An error means that nothing changed, so the agent is thawed again.
		err = errors.Join(err, r.supervisors.ask(c, c.run, methods.RunResume.Name, p, nil))
	}
	return api.Nothing{}, err
}

// resume thaws a run. If that cannot be stored, the run is frozen again.
func (r live) resume(c *request, p api.RunParams) (api.Nothing, error) {
	if err := r.supervisors.ask(c, c.run, methods.RunResume.Name, p, nil); err != nil {
		return api.Nothing{}, err
	}
	// gofail: var resumeAsked string
	// if err := failpoint(resumeAsked, ""); err != nil { return api.Nothing{}, err }

	_, err := r.records.amend(c.run.Spec.ID, agent.RunResumed, c.peer.String(), func(run *agent.Run) { run.SetPaused(false) })
	if err != nil {
		err = errors.Join(err, r.supervisors.ask(c, c.run, methods.RunPause.Name, p, nil))
	}
	return api.Nothing{}, err
}

// update changes the limits and rules of a live run. The supervisor changes them and stores
// the new spec; here only the bounds of users and of the host are checked.
func (r live) update(c *request, p api.UpdateParams) (api.RunResult, error) {
	if err := p.Update.Validate(); err != nil {
		return api.RunResult{}, err
	}
	if !c.peer.root() {
		if err := r.limits.checkAmounts(updated(c.run.Spec.Limits, p.Update)); err != nil {
			return api.RunResult{}, err
		}
	}
	spec := c.run.Spec
	spec.Limits = updated(spec.Limits, p.Update)
	if p.Update.Rules != nil {
		spec.Egress.Rules = *p.Update.Rules
		if err := r.limits.config().Users.checkReach(spec, principal{owner: c.run.Owner}); err != nil {
			return api.RunResult{}, err
		}
	}
	// A run above a ceiling that was lowered may still be narrowed.
	var wider []string
	for _, difference := range settings.Wider(c.run.Spec, spec) {
		wider = append(wider, difference.Place)
	}
	if len(wider) > 0 {
		if err := r.limits.config().checkCeiling(spec, wider...); err != nil {
			return api.RunResult{}, err
		}
	}
	if m := p.Update.MemoryBytes; m != nil {
		if err := r.limits.paths.CheckAmounts(agent.Limits{MemoryBytes: *m}); err != nil {
			return api.RunResult{}, err
		}
		if err := r.fits(c, *m); err != nil {
			return api.RunResult{}, err
		}
	}
	spec, err := r.limits.config().labelled(spec)
	if err != nil {
		return api.RunResult{}, err
	}
	if err := r.supervisors.ask(c, c.run, methods.RunUpdate.Name, p, nil); err != nil {
		return api.RunResult{}, err
	}
	// gofail: var updateAsked string
	// if err := failpoint(updateAsked, ""); err != nil { return api.RunResult{}, err }

	// The supervisor has stored the new limits. This adds who asked for it, and the policy that
	// the run keeps to now.
	_, err = r.records.amend(c.run.Spec.ID, agent.RunUpdated, c.peer.String(), func(run *agent.Run) { run.Spec.Policy = spec.Policy })
	if err != nil {
		return api.RunResult{}, err
	}
	return r.result(c.run.Spec.ID)
}

// updated are the limits as the update would leave them. The swap beside the memory stays what it was: MemorySwapBytes is both together.
func updated(now agent.Limits, u agent.Update) agent.Limits {
	if u.MemoryBytes != nil {
		if now.MemorySwapBytes >= 0 {
			now.MemorySwapBytes += *u.MemoryBytes - now.MemoryBytes
		}
		now.MemoryBytes = *u.MemoryBytes
	}
	if u.MemorySwapBytes != nil {
		now.MemorySwapBytes = *u.MemorySwapBytes
	}
	if u.CPUs != nil {
		now.CPUs = *u.CPUs
	}
	if u.Pids != nil {
		now.Pids = *u.Pids
	}
	if u.WallClock != nil {
		now.WallClock = *u.WallClock
	}
	return now
}

// fits refuses more memory than is left for the run, counted as for a start. A live run
// cannot wait in the queue for it, so this is an error.
func (r live) fits(c *request, wanted int64) error {
	runs := r.cache.all(func(run *agent.Run) bool { return run.Lease != nil })
	m, err := r.memory.of(runs)
	before := c.run.Spec.Limits.MemoryBytes
	counted := m.Used + scheduler.Reserves(runs) + scheduler.Reserve(wanted) - scheduler.Reserve(before)
	if err != nil || m.Limit == 0 || wanted <= before || wanted <= m.Limit && counted <= m.Limit {
		return err
	}
	return api.Failure(api.CodeConflict, "end other runs, or raise memory_share in cloved's configuration",
		"it would have %d MiB of memory, and all agents together would count with %d MiB: they may have %d MiB", wanted>>20, counted>>20, m.Limit>>20)
}

// stats are what the supervisor of a live run measures.
func (r live) stats(c *request, p api.RunParams) (result api.StatsResult, err error) {
	err = r.supervisors.ask(c, c.run, methods.RunStats.Name, p, &result)
	return result, err
}

// processes may be as long as a line of the supervisor's.
func (r live) processes(c *request, p api.RunParams) (later, error) {
	return later{reserve: rpc.MaxLine, make: func() (any, error) {
		var result json.RawMessage
		err := r.supervisors.ask(c, c.run, methods.RunProcesses.Name, p, &result)
		return result, err
	}}, nil
}
