package runtime

import (
	"context"
	"errors"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
)

// freezer stops the processes of one agent, for Pause and for the readers of its
// layer, and lets them go on when neither needs it. It is used in the supervisor's
// loop only.
type freezer struct {
	name   string // the run's
	group  *cgroups.Group
	sum    *cgroups.Group // of it and all that it starts; nil: it starts none
	paused bool
	holds  map[*hold]bool
}

// hold is one reader for which the agent is frozen.
type hold struct{ release context.CancelFunc }

// frozen reports whether the cgroup is to stand still, for whatever reason.
func (f *freezer) frozen() bool { return f.paused || len(f.holds) > 0 }

// pause refuses an agent whose end has begun.
func (f *freezer) pause(ending bool) error {
	switch {
	case f.paused:
		return &agent.Error{Kind: agent.KindConflict, Step: "pause", Message: f.name + " is paused already",
			Hint: "`clove resume` lets it go on"}
	// A frozen agent could not act on the signal to end, and clove-init could not count its
	// grace.
	case ending:
		return &agent.Error{Kind: agent.KindConflict, Step: "pause", Message: f.name + " is being ended"}
	}
	if err := f.whole().Freeze(); err != nil { // it may be frozen already, for a reader
		f.releaseAll() // a part of it may be frozen, so all of it is thawed
		return &agent.Error{Kind: freezeKind(err), Step: "pause", Message: "cannot freeze all processes of " + f.name,
			Hint: "it continues to run; `clove doctor` shows whether this host has a freezer", Err: errors.Join(err, f.release())}
	}
	f.paused = true
	return nil
}

// freezeKind distinguishes a host without a freezer, where a retry is pointless, from a
// freeze that took too long.
func freezeKind(err error) agent.Kind {
	if errors.Is(err, cgroups.ErrNoFreezer) {
		return agent.KindUnenforceable
	}
	return agent.KindInternal
}

// resume ends the pause only. Readers of the layer keep the agent still, and the last of
// them thaws it.
func (f *freezer) resume() error {
	if !f.paused {
		return &agent.Error{Kind: agent.KindConflict, Step: "resume", Message: f.name + " is not paused"}
	}
	if len(f.holds) > 0 {
		f.paused = false // the last reader lets it go on; what it has started goes on now
		if f.sum == nil {
			return nil
		}
		return agent.Failed("resume", errors.Join(f.group.Freeze(), f.sum.Thaw()))
	}
	return agent.Failed("resume", f.thaw())
}

// thaw lets a frozen agent go on, for whatever reason it was frozen. If it is not frozen,
// nothing happens.
func (f *freezer) thaw() error {
	if !f.frozen() {
		return nil
	}
	f.releaseAll()
	err := f.release()
	f.paused = err != nil
	return err
}

// whole is what a pause freezes: the agent, and with it all that it has started. A reader of the
// layer needs the agent alone.
func (f *freezer) whole() *cgroups.Group {
	if f.sum != nil {
		return f.sum
	}
	return f.group
}

// release thaws the tree first: below a frozen one nothing can be thawed.
func (f *freezer) release() error {
	if f.sum == nil {
		return f.group.Thaw()
	}
	return errors.Join(f.sum.Thaw(), f.group.Thaw())
}

// hold freezes the agent for a reader, unless its end has begun.
func (f *freezer) hold(h *hold, ending bool) error {
	if ending {
		return &agent.Error{Kind: agent.KindConflict, Step: "layer", Message: f.name + " is being ended", Hint: "ask again when it has ended"}
	}
	if !f.frozen() {
		if err := f.group.Freeze(); err != nil {
			return &agent.Error{Kind: freezeKind(err), Step: "layer", Message: f.name + " cannot be frozen, so its changes cannot be read",
				Hint: "wait for its end; `clove doctor` shows whether this host has a freezer", Err: errors.Join(err, f.group.Thaw())}
		}
	}
	f.holds[h] = true
	return nil
}

// letGo ends one hold; the last one lets the agent go on.
func (f *freezer) letGo(h *hold) error {
	if !f.holds[h] {
		return nil // it was released
	}
	delete(f.holds, h)
	if f.frozen() {
		return nil
	}
	return f.group.Thaw()
}

// releaseAll cancels the readers: the agent has to move.
func (f *freezer) releaseAll() {
	for h := range f.holds {
		h.release()
	}
	clear(f.holds)
}
