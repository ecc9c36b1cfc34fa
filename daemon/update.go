package daemon

import (
	"errors"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// pause freezes a run. That it is paused is noted for those who list runs.
func pause(c *call, p api.RunParams) (any, error) {
	if err := c.ask(api.MethodRunPause, p, nil); err != nil {
		return nil, err
	}
	// gofail: var pauseAsked string
	// if err := failpoint(pauseAsked, ""); err != nil { return nil, err }

	_, err := c.records.amend(c.run.Spec.ID, agent.RunPaused, c.peer.String(), func(run *agent.Run) { run.Turn.Paused = true })
	if err != nil {
		// An error means that nothing changed.
		err = errors.Join(err, c.ask(api.MethodRunResume, p, nil))
	}
	return api.Nothing{}, err
}

func resume(c *call, p api.RunParams) (any, error) {
	if err := c.ask(api.MethodRunResume, p, nil); err != nil {
		return nil, err
	}
	// gofail: var resumeAsked string
	// if err := failpoint(resumeAsked, ""); err != nil { return nil, err }

	_, err := c.records.amend(c.run.Spec.ID, agent.RunResumed, c.peer.String(), func(run *agent.Run) { run.Turn.Paused = false })
	if err != nil {
		err = errors.Join(err, c.ask(api.MethodRunPause, p, nil))
	}
	return api.Nothing{}, err
}

// update changes what a live run is held to. The supervisor does it and notes
// it in the stored spec; here it is only seen that a user stays within bounds.
func update(c *call, p api.UpdateParams) (any, error) {
	if err := p.Update.Validate(); err != nil {
		return nil, err
	}
	if !c.peer.root() {
		if err := c.checkAmounts(updated(c.run.Spec.Limits, p.Update)); err != nil {
			return nil, err
		}
	}
	if p.Update.Rules != nil {
		spec := c.run.Spec
		spec.Egress.Rules = *p.Update.Rules
		if err := c.checkReach(spec, c.run.Owner); err != nil {
			return nil, err
		}
	}
	if m := p.Update.MemoryBytes; m != nil {
		if err := c.fits(*m); err != nil {
			return nil, err
		}
	}
	if err := c.ask(api.MethodRunUpdate, p, nil); err != nil {
		return nil, err
	}
	// gofail: var updateAsked string
	// if err := failpoint(updateAsked, ""); err != nil { return nil, err }

	if _, err := c.records.amend(c.run.Spec.ID, agent.RunUpdated, c.peer.String(), func(*agent.Run) {}); err != nil {
		return nil, err
	}
	return c.result(c.run.Spec.ID)
}

// updated are the limits as the update would leave them, as far as cloved
// bounds them. The swap beside the memory stays what it was.
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
	return now
}

// fits refuses more memory than is left to promise.
func (c *call) fits(memory int64) error {
	most := c.config().memoryBytes()
	if most == 0 || memory <= c.run.Spec.Limits.MemoryBytes {
		return nil
	}
	promised := memory
	for _, run := range c.mirror.all(func(run *agent.Run) bool { return run.Lease != nil && run.Spec.ID != c.run.Spec.ID }) {
		promised += run.Spec.Limits.MemoryBytes
	}
	if promised > most {
		return api.Failure(api.CodeConflict, "end other runs, or raise memory_share in cloved's configuration",
			"all agents together would be promised %d of %d MiB of memory", promised>>20, most>>20)
	}
	return nil
}
