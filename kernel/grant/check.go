package grant

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Check finds the grant that allows a concrete request. Of several it returns one without a
// number of uses, else the first. Grants that were derived are given as Effective returns
// them. Without one, reason says in a sentence why the nearest does not allow it.
func Check(grants []Grant, what Scope, now time.Time) (allowing Grant, reason string, ok bool) {
	if !what.Concrete() {
		return Grant{}, fmt.Sprintf("%s is a pattern, a request names one thing", quote(what.String())), false
	}
	var nearest Grant
	near := none
	for _, g := range grants {
		if g.Kind != what.kind {
			continue
		}
		at := g.nearness(what, now)
		if at == allows && g.UsesLeft == Unlimited {
			return g, "", true
		}
		if at > near {
			nearest, near = g, at
		}
	}
	if near == allows {
		return nearest, "", true
	}
	return Grant{}, nearest.lacks(near, what, now), false
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

func (g Grant) nearness(what Scope, now time.Time) nearness {
	scope, err := g.Scope()
	anyRights := what
	anyRights.rights = scope.rights
	switch {
	case err != nil:
		return damaged
	case !scope.Covers(anyRights):
		return otherPattern
	case !scope.Covers(what):
		return otherRights
	case g.Expired(now):
		return expired
	case g.Spent():
		return spent
	}
	return allows
}

// lacks is the sentence on the nearest grant.
func (g Grant) lacks(near nearness, what Scope, now time.Time) string {
	has := Scope{kind: g.Kind, pattern: g.Pattern, rights: g.Rights}
	switch near {
	case none:
		return fmt.Sprintf("there is no grant of kind %s", what.kind)
	case damaged:
		return fmt.Sprintf("grant %s cannot be read, it is for %s", g.ID, quote(has.String()))
	case otherPattern:
		return fmt.Sprintf("grant %s is for %s, which does not cover %s", g.ID, has, what)
	case otherRights:
		return fmt.Sprintf("grant %s gives %s on %s, not %s", g.ID, cmp.Or(g.Rights, "no rights"), g.Pattern, what.rights)
	}
	return g.ended(now)
}

// Covered reports whether one of the grants of a list covers what a text grants. A text that is no grant is covered by none, and covers
// nothing.
func Covered(list []string, text string) bool {
	narrow, err := Parse(text)
	return err == nil && slices.ContainsFunc(list, func(have string) bool {
		wide, err := Parse(have)
		return err == nil && wide.Covers(narrow)
	})
}
