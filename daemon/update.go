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

	_, err := c.records.amend(c.run.Spec.ID, agent.WhatPaused, c.peer.String(), func(run *agent.Run) { run.Turn.Paused = true })
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

	_, err := c.records.amend(c.run.Spec.ID, agent.WhatResumed, c.peer.String(), func(run *agent.Run) { run.Turn.Paused = false })
	if err != nil {
		err = errors.Join(err, c.ask(api.MethodRunPause, p, nil))
	}
	return api.Nothing{}, err
}

// update changes what a live run is held to. The supervisor does it and notes
// it in the stored spec; here it is only seen that a user stays within bounds.
func update(c *call, p api.UpdateParams) (any, error) {
	if m := p.Update.MemoryBytes; m != nil {
		if most, _ := parseSize(c.config().Users.Memory); !c.peer.root() && most > 0 && *m > most {
			return nil, api.Failure(api.CodeDenied, "ask for less", "memory of %d MiB is above what a user may have, %s", *m>>20, c.config().Users.Memory)
		}
		if err := c.fits(*m); err != nil {
			return nil, err
		}
	}
	if err := c.ask(api.MethodRunUpdate, p, nil); err != nil {
		return nil, err
	}
	// gofail: var updateAsked string
	// if err := failpoint(updateAsked, ""); err != nil { return nil, err }

	if _, err := c.records.amend(c.run.Spec.ID, agent.WhatUpdated, c.peer.String(), func(*agent.Run) {}); err != nil {
		return nil, err
	}
	return c.result(c.run.Spec.ID)
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
