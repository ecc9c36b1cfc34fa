package daemon

import (
	"context"
	"sync"

	"clove.run/clove/api"
)

// slots bound how much of one kind is done at once, in all and for each user, so that a
// caller that is slow, or means to be, does not hold up the others. One kind is counted in
// places (streams), another in bytes (owed).
type slots struct {
	what      string
	all, each int // 0: no bound; each is for one user other than root
	// Of root alone, and of all users but root together; 0: no bound. A caller that
	// would go beyond these is refused and never waits for another.
	root, members int

	mu   sync.Mutex // guards the following
	used map[uint32]int
	sum  int
	free chan struct{} // closed and replaced when a place becomes free
}

// newSlots makes slots that are all free. what is plural, for messages.
func newSlots(what string, all, each int) *slots {
	return &slots{what: what, all: all, each: each, used: map[uint32]int{}, free: make(chan struct{})}
}

// enter takes a place. A user who has too many already is refused; where others
// have them all, it waits.
func (s *slots) enter(ctx context.Context, uid uint32) (leave func(), err error) {
	if err := s.take(ctx, uid, 1); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { s.give(uid, 1) }), nil
}

// take is enter for so many places at once, which give gives back. The bounds are looked at
// again after each wait: the user may have taken places meanwhile.
func (s *slots) take(ctx context.Context, uid uint32, n int) error {
	for {
		s.mu.Lock()
		if err := s.refusal(uid, n); err != nil {
			s.mu.Unlock()
			return err
		}
		// Only the bound of all makes a caller wait.
		if s.all == 0 || s.sum+n <= s.all {
			s.used[uid] += n
			s.sum += n
			s.mu.Unlock()
			return nil
		}
		free := s.free
		s.mu.Unlock()
		select {
		case <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// refusal says why a user does not get n more; s.mu is held.
func (s *slots) refusal(uid uint32, n int) error {
	each := s.each
	if uid == 0 {
		each = s.root
	}
	if each > 0 && s.used[uid]+n > each {
		return api.Failure(api.CodeBusy, "wait for the others to end", "you may have %d %s at once, and no more", each, s.what)
	}
	if s.members > 0 && uid != 0 && s.sum-s.used[0]+n > s.members {
		return api.Failure(api.CodeBusy, "try again in a moment", "all users together may have %d %s at once, and no more", s.members, s.what)
	}
	return nil
}

// give wakes all waiters: which of them fits now depends on how much each wants.
func (s *slots) give(uid uint32, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum -= n
	if s.used[uid] -= n; s.used[uid] == 0 {
		// Or the map would keep every user that ever called.
		delete(s.used, uid)
	}
	close(s.free)
	s.free = make(chan struct{})
}
