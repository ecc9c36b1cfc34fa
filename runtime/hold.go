package runtime

import (
	"context"
	"errors"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
)

// maxHold bounds how long an agent stands still for a reader of its layer.
const maxHold = 2 * time.Minute

// Layer gives use the layer of an agent that stands still meanwhile, so that
// what is read is of one moment. Its wall clock goes on. ctx of use ends when
// the agent has to move again: at its end, its deadline, or after maxHold.
func (l *Live) Layer(ctx context.Context, use func(ctx context.Context, layer *os.File) error) error {
	ctx, cancel := context.WithTimeout(ctx, maxHold)
	defer cancel()
	h := &hold{release: cancel}
	var layer *os.File
	var guests func()
	err := l.do(func() error {
		if err := l.s.hold(h); err != nil {
			return err
		}
		layer = l.s.tree.Layer()
		l.s.guests.Add(1) // the loop lives, so nobody waits for the last one yet
		guests = l.s.guests.Done
		return nil
	})
	if err != nil {
		return err
	}
	defer guests()
	defer l.do(func() error { return l.s.letGo(h) }) // an agent that has ended stands still anyway
	go func() {
		select {
		case <-l.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	return use(ctx, layer)
}

// hold is one reader for whom the agent stands still.
type hold struct{ release context.CancelFunc }

// frozen tells whether the cgroup is to stand still, for whatever reason.
func (s *supervisor) frozen() bool { return s.paused || len(s.holds) > 0 }

// hold freezes the agent for a reader.
func (s *supervisor) hold(h *hold) error {
	if s.seen.cause != causeNone {
		return &agent.Error{Kind: agent.KindConflict, Step: "layer", Message: s.spec.Name + " is being ended", Hint: "ask again when it has ended"}
	}
	if !s.frozen() {
		if err := s.group.Freeze(); err != nil {
			kind := agent.KindInternal
			if errors.Is(err, cgroups.ErrNoFreezer) {
				kind = agent.KindUnenforceable
			}
			return &agent.Error{Kind: kind, Step: "layer", Message: s.spec.Name + " cannot be held still, so what it changes cannot be read",
				Hint: "wait for its end; `clove doctor` shows whether this host has a freezer", Err: errors.Join(err, s.group.Thaw())}
		}
	}
	s.holds[h] = true
	return nil
}

// letGo ends one hold; the last one lets the agent go on.
func (s *supervisor) letGo(h *hold) error {
	if !s.holds[h] {
		return nil // it was released
	}
	delete(s.holds, h)
	if s.frozen() {
		return nil
	}
	return s.group.Thaw()
}

// releaseAll sends the readers away: the agent has to move.
func (s *supervisor) releaseAll() {
	for h := range s.holds {
		h.release()
	}
	clear(s.holds)
}
