//go:build root

package kernel

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// slower is by how much the thing itself is answered later than one that there is not: the median over pairs, which
// are asked in an order of chance because a machine is never the same for long, and collects garbage in a rhythm. usual is the time of the others.
func (h hidden) slower(by *rig, pairs int) (slower, usual time.Duration) {
	apart, took := make([]time.Duration, pairs), make([]time.Duration, pairs)
	for i := range pairs {
		first, second := h.id, h.absent
		turned := rand.IntN(2) == 1
		if turned {
			first, second = second, first
		}
		_, a := h.asked(by, first)
		_, b := h.asked(by, second)
		if turned {
			a, b = b, a
		}
		apart[i], took[i] = a-b, b
	}
	slices.Sort(apart)
	slices.Sort(took)
	return apart[pairs/2], took[pairs/2]
}

// visible is the difference that a caller could see: it is a part of the time, or so long that a caller who asks often
// sees it.
func visible(slower, usual time.Duration) bool {
	return slower.Abs() > max(usual/6, 40*time.Microsecond*slowdown)
}

// What belongs to another namespace or owner is answered in the time of what does not exist. A difference
// counts if each of several measurements has it, in the same direction: a machine with other work has one now and then, in either.
// The control is the
// holder, to whom what is found comes visibly later than what is not, where a call that is refused is not written to
// the disk.
func TestWhatIsHiddenTakesTheTimeOfAMiss(t *testing.T) {
	r, all := newHolder(t)
	others := strangers(r)
	for _, h := range all {
		for name, other := range others {
			if h.user && name != "another owner" {
				continue
			}
			slower, usual := h.slower(other, 25)
			later, same := slower > 0, true
			for measured := 1; same && visible(slower, usual) && measured < 8; measured++ {
				slower, usual = h.slower(other, 100)
				same = later == (slower > 0)
			}
			if same && visible(slower, usual) {
				t.Errorf("%s sees by the time of %s that there is %s: %s later than %s", name, h.method, h.what, slower, usual)
			}
		}
	}
	seen := 0
	for _, h := range all {
		switch h.method {
		case agents.NameLookup.Name, agents.JobGet.Name, agents.StateGet.Name, methods.JobsShow.Name:
			slower, usual := h.slower(r, 100)
			for measured := 1; !visible(slower, usual) && measured < 6; measured++ {
				slower, usual = h.slower(r, 100)
			}
			if seen++; !visible(slower, usual) {
				t.Errorf("control: the holder's %s of %s comes %s later than %s", h.method, h.what, slower, usual)
			}
		}
	}
	if seen < 5 {
		t.Errorf("control: %d", seen)
	}
}
