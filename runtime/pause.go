package runtime

import "clove.run/clove/agent"

// Pause stops every process of the agent until Resume, without a signal that
// it could see. The wall clock goes on and ends it also while it is paused;
// clove-init stands still with the rest, so the supervisor keeps that clock.
func (l *Live) Pause() error {
	return l.do(func() error { return l.s.freezer.pause(l.s.seen.cause != causeNone) })
}

// Resume lets a paused agent go on; one that is not paused is a KindConflict.
func (l *Live) Resume() error {
	return l.do(func() error {
		if l.s.share != nil && l.s.share.paused {
			return &agent.Error{Kind: agent.KindConflict, Step: "resume", Message: l.s.spec.Name + " is paused until it has more of a budget",
				Hint: "`clove budget show` says of which, `clove budget raise` gives more"}
		}
		return l.s.freezer.resume()
	})
}
