package grant

import (
	"fmt"
	"time"

	"clove.run/clove/agent"
)

// Derive returns a grant that passes on a part of parent, which is as Effective returns it.
// It is never wider, and of the same manifest. What Request leaves out, the parent decides: its expiry, and as many
// uses as it has left. The error is of KindInvalid for a request that no caller could make,
// and of KindPrivilege for one that this parent does not permit.
func Derive(parent Grant, want Request, now time.Time) (Grant, error) {
	if err := want.check(now); err != nil {
		return Grant{}, err
	}
	for _, check := range []func(Grant, Request, time.Time) error{alive, narrower, notLonger, notMore} {
		if err := check(parent, want, now); err != nil {
			return Grant{}, err
		}
	}
	if want.Expires.IsZero() {
		want.Expires = parent.Expires
	}
	if want.Uses == 0 {
		want.Uses = parent.UsesLeft
	}
	g, err := New(want, now)
	g.Parent, g.Depth, g.Digest = parent.ID, parent.Depth+1, parent.Digest
	return g, err
}

// alive refuses a parent from which nothing can be derived any more.
func alive(parent Grant, _ Request, now time.Time) error {
	switch {
	case parent.Expired(now) || parent.Spent():
		return beyond(parent.ended(now), "ask for a new grant")
	case parent.Depth >= DepthMost:
		return beyond(fmt.Sprintf("grant %s has %d grants above it already, at most %d are allowed", parent.ID, parent.Depth, DepthMost), "derive from one further up")
	}
	return nil
}

// narrower compares the scopes. An agent is never root, so it passes on no metadata service
// and not the word host, also where its own grant has them; see Rules for the addresses
// that are the host's.
func narrower(parent Grant, want Request, _ time.Time) error {
	scope, err := parent.Scope()
	if err != nil {
		return err
	}
	if !scope.Covers(want.Scope) {
		return beyond(fmt.Sprintf("grant %s is for %s, which does not cover %s", parent.ID, scope, want.Scope), "ask for a part of "+scope.String())
	}
	if want.Scope.kind == Net {
		return allowable(want.Scope.pattern, nil, true)
	}
	return nil
}

func notLonger(parent Grant, want Request, _ time.Time) error {
	if parent.Expires.IsZero() || !want.Expires.After(parent.Expires) {
		return nil
	}
	return beyond(fmt.Sprintf("grant %s expires before %s", parent.ID, want.Expires.UTC().Format(time.RFC3339)), "leave the expiry out to get its own, "+parent.Expires.Format(time.RFC3339))
}

func notMore(parent Grant, want Request, _ time.Time) error {
	if parent.UsesLeft == Unlimited || want.Uses != Unlimited && want.Uses <= parent.UsesLeft {
		return nil
	}
	return beyond(fmt.Sprintf("grant %s has %d uses left", parent.ID, parent.UsesLeft), "ask for no more than these")
}

func beyond(message, hint string) error {
	return &agent.Error{Kind: agent.KindPrivilege, Message: message, Hint: hint}
}
