package grant

import (
	"fmt"
	"time"
)

// Check finds the grant that allows a concrete request. Of several it returns one without a
// number of uses, else the first. Grants that were derived are given as Effective returns
// them. Without one, reason says in a sentence why the nearest does not allow it.
func Check(grants []Grant, what Scope, now time.Time) (allowing Grant, reason string, ok bool) {
	if !what.Concrete() {
		return Grant{}, fmt.Sprintf("%s is a pattern, a request names one thing", quote(what.String())), false
	}
	near := miss{reason: fmt.Sprintf("there is no grant of kind %s", what.kind)}
	for _, g := range grants {
		if g.Kind != what.kind {
			continue
		}
		m := g.misses(what, now)
		if m.near == allows && g.UsesLeft == Unlimited {
			return g, "", true
		}
		if m.near == allows && !ok {
			allowing, ok = g, true
		}
		near = near.or(m)
	}
	if ok {
		return allowing, "", true
	}
	return Grant{}, near.reason, false
}

// nearness orders grants by how little they lack.
type nearness int

const (
	none nearness = iota // no grant of the kind
	damaged
	otherPattern
	otherRights
	spent
	expired
	allows
)

// miss is why a grant does not allow a request.
type miss struct {
	near   nearness
	reason string
}

// or keeps the nearer one, the first of equals.
func (m miss) or(other miss) miss {
	if other.near > m.near {
		return other
	}
	return m
}

func (g Grant) misses(what Scope, now time.Time) miss {
	scope, err := g.Scope()
	if err != nil {
		return miss{damaged, fmt.Sprintf("grant %s cannot be read: %s", g.ID, err)}
	}
	asked := what
	asked.rights = scope.rights
	switch {
	case !scope.Covers(asked):
		return miss{otherPattern, fmt.Sprintf("grant %s is for %s, which does not cover %s", g.ID, scope, what)}
	case !scope.Covers(what):
		return miss{otherRights, fmt.Sprintf("grant %s gives %s on %s, not %s", g.ID, scope.rights, scope.pattern, what.rights)}
	case g.Expired(now):
		return miss{expired, g.ended(now)}
	case g.Spent():
		return miss{spent, g.ended(now)}
	}
	return miss{near: allows}
}
