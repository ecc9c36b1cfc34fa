package daemon

import (
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// TestReadsThePastWhenAsked: events from before this cloved started are read at the first
// request for them, without a gap to the newer ones. Other requests do not read them.
func TestReadsThePastWhenAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.add("before", agent.Owner{}, agent.StateEnded)
	must(t, r.d.cache.refresh())
	last := r.d.cache.newest()
	if last == 0 || len(r.d.cache.past) != 0 {
		t.Fatalf("%d happened, and %d were read", last, len(r.d.cache.past))
	}
	c := r.serve()
	r.add("since", agent.Owner{}, agent.StateEnded)
	numbers := func(after uint64) (all []uint64) {
		_, err := client.Each(within(t), c, methods.EventFollow, api.EventParams{After: &after}, func(n api.EventNote) error {
			if n.Gap {
				t.Error("a gap")
				return nil
			}
			all = append(all, n.Event.Sequence)
			return nil
		})
		must(t, err)
		return all
	}
	if got := numbers(last); len(got) == 0 || got[0] != last+1 {
		t.Errorf("after %d: %v", last, got)
	}
	r.d.cache.mu.Lock()
	if first := r.d.cache.past[0].Sequence; first != last+1 {
		t.Errorf("%d was read without a request", first)
	}
	r.d.cache.mu.Unlock()
	for range 2 { // once read, it stays
		got := numbers(0)
		for i, n := range got {
			if n != uint64(i)+1 {
				t.Errorf("%v", got)
			}
		}
		if uint64(len(got)) <= last {
			t.Errorf("%d of more than %d", len(got), last)
		}
	}
}
