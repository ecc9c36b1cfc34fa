package runtime

import (
	"errors"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
)

// Pause stops every process of the agent until Resume, without a signal that
// it could see. The wall clock goes on and ends it also while it is paused;
// clove-init stands still with the rest, so the supervisor keeps that clock.
func (l *Live) Pause() error { return l.do(l.s.pause) }

// Resume lets a paused agent go on; one that is not paused is a KindConflict.
func (l *Live) Resume() error { return l.do(l.s.resume) }

func (s *supervisor) pause() error {
	switch {
	case s.paused:
		return &agent.Error{Kind: agent.KindConflict, Step: "pause", Message: s.spec.Name + " is paused already",
			Hint: "`clove resume` lets it go on"}
	case s.seen.cause != causeNone:
		return &agent.Error{Kind: agent.KindConflict, Step: "pause", Message: s.spec.Name + " is being ended"}
	}
	err := s.group.Freeze() // which it may be, for a reader
	if err == nil {
		s.paused = true
		return nil
	}
	kind := agent.KindInternal
	if errors.Is(err, cgroups.ErrNoFreezer) {
		kind = agent.KindUnenforceable
	}
	// A part of it may stand still; all of it shall go on.
	s.releaseAll()
	return &agent.Error{Kind: kind, Step: "pause", Message: "cannot stop all of " + s.spec.Name,
		Hint: "it goes on; `clove doctor` shows whether this host has a freezer", Err: errors.Join(err, s.group.Thaw())}
}

func (s *supervisor) resume() error {
	if !s.paused {
		return &agent.Error{Kind: agent.KindConflict, Step: "resume", Message: s.spec.Name + " is not paused"}
	}
	if len(s.holds) > 0 {
		s.paused = false // the last reader lets it go on
		return nil
	}
	return agent.Failed("resume", s.thaw())
}

// thaw lets a frozen agent go on, whoever wanted it still, and does nothing to
// another.
func (s *supervisor) thaw() error {
	if !s.frozen() {
		return nil
	}
	s.releaseAll()
	err := s.group.Thaw()
	s.paused = err != nil
	return err
}
