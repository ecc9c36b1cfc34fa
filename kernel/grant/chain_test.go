package grant

import (
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// chainOf is a chain of grants with these numbers of uses; the last is the root.
func chainOf(t *testing.T, uses ...int64) []Grant {
	t.Helper()
	var chain []Grant
	for i, n := range uses {
		g := Grant{ID: string(rune('a' + i)), Kind: Tool, Pattern: "x", UsesLeft: n, Depth: len(uses) - 1 - i}
		if g.Depth > 0 {
			g.Parent = string(rune('b' + i))
		}
		chain = append(chain, g)
	}
	return chain
}

func TestAncestorsBound(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		uses []int64
		want int64
	}{
		{[]int64{5}, 5}, {[]int64{Unlimited}, Unlimited}, {[]int64{5, 2, 9}, 2}, {[]int64{Unlimited, Unlimited, 3}, 3}, {[]int64{4, Unlimited, Unlimited}, 4}, {[]int64{4, 0, Unlimited}, 0},
	} {
		if g, err := Effective(chainOf(t, row.uses...)); err != nil || g.UsesLeft != row.want || g.ID != "a" {
			t.Errorf("%v: %+v, %v", row.uses, g, err)
		}
	}
	chain := chainOf(t, 1, 1, 1)
	chain[0].Expires, chain[1].Expires, chain[2].Expires = now.Add(3), now.Add(1), now.Add(2)
	if g, err := Effective(chain); err != nil || !g.Expires.Equal(now.Add(1)) {
		t.Errorf("%+v, %v", g, err)
	}
	chain[0].Expires, chain[1].Expires = time.Time{}, time.Time{}
	if g, err := Effective(chain); err != nil || !g.Expires.Equal(now.Add(2)) {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestAGrantEndsWithItsAncestors(t *testing.T) {
	t.Parallel()
	whole := chainOf(t, 1, 1, 1)
	for name, chain := range map[string][]Grant{"the root is gone": whole[:2], "the parent is gone": {whole[0], whole[2]}, "another order": {whole[2], whole[1], whole[0]}} {
		if g, err := Effective(chain); agent.KindOf(err) != agent.KindConflict {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
		if changed, err := Use(chain, now); agent.KindOf(err) != agent.KindConflict || changed != nil {
			t.Errorf("%s: %+v, %v", name, changed, err)
		}
	}
	long := chainOf(t, slices.Repeat([]int64{1}, DepthMost+2)...)
	for _, chain := range [][]Grant{nil, long} {
		if _, err := Effective(chain); err == nil {
			t.Errorf("%d grants are a chain", len(chain))
		}
	}
}

func TestAUseCountsOnEachAncestor(t *testing.T) {
	t.Parallel()
	changed, err := Use(chainOf(t, 2, Unlimited, 1), now)
	if err != nil || len(changed) != 2 || changed[0].ID != "a" || changed[0].UsesLeft != 1 || changed[1].ID != "c" || changed[1].UsesLeft != 0 {
		t.Errorf("%+v, %v", changed, err)
	}
	if changed, err := Use(chainOf(t, Unlimited, Unlimited), now); err != nil || changed != nil {
		t.Errorf("without a number: %+v, %v", changed, err)
	}
	expired := chainOf(t, 2, 2)
	expired[1].Expires = now
	for _, chain := range [][]Grant{chainOf(t, 2, 0, 2), expired} {
		if changed, err := Use(chain, now); agent.KindOf(err) != agent.KindPrivilege || changed != nil {
			t.Errorf("an ancestor has ended: %+v, %v", changed, err)
		}
	}
	chain := chainOf(t, 1)
	if _, err := Use(chain, now); err != nil || chain[0].UsesLeft != 1 {
		t.Errorf("the caller's rows changed: %+v, %v", chain, err)
	}
}
