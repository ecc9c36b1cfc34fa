package upstream

import "sync"

// ownerLimits are so many bytes for each owner of agents.
type ownerLimits struct {
	each int64

	mu   sync.Mutex       // guards used
	used map[uint32]int64 // of owners that use some
}

func newOwnerLimits(each int64) *ownerLimits {
	return &ownerLimits{each: each, used: map[uint32]int64{}}
}

// take reports whether an owner had the room.
func (r *ownerLimits) take(owner uint32, n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.each-r.used[owner] {
		return false
	}
	r.used[owner] += n
	return true
}

func (r *ownerLimits) give(owner uint32, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.used[owner] -= n; r.used[owner] == 0 {
		delete(r.used, owner)
	}
}
