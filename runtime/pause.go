package runtime

import "clove.run/clove/agent"

// Pause stops every process of the agent until Resume, without a signal that
// it could see. The wall clock goes on and ends it also while it is paused;
// clove-init stands still with the rest, so the supervisor keeps that clock.
func (l *Live) Pause() error {
	return l.do(func() error {
		if err := l.s.spent("pause"); err != nil {
			return err
		}
		return l.s.freezer.pause(l.s.seen.cause != causeNone)
	})
}

// spent refuses to pause or resume an agent that its budget has paused: more of the budget lets
// it go on, and nothing else does.
func (s *supervisor) spent(step string) error {
	if s.share == nil || !s.share.paused {
		return nil
	}
	return &agent.Error{Kind: agent.KindConflict, Step: step, Message: s.spec.Name + " is paused until it has more of a budget",
		Hint: "`clove budget show` says of which, `clove budget raise` gives more"}
}

// Resume lets a paused agent go on; one that is not paused is a KindConflict.
func (l *Live) Resume() error {
	return l.do(func() error {
		if err := l.s.spent("resume"); err != nil {
			return err
		}
		return l.s.freezer.resume()
	})
}
