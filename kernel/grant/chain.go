package grant

import (
	"fmt"
	"time"

	"clove.run/clove/agent"
)

// Effective returns the first grant of a chain as its ancestors leave it: the earliest
// expiry and the fewest uses of all. The chain is the grant, its parent, and so on to a
// grant without one. If an ancestor is missing, it was revoked, and the grant with it: the
// error is of KindConflict.
func Effective(chain []Grant) (Grant, error) {
	if err := linked(chain); err != nil {
		return Grant{}, err
	}
	g := chain[0]
	for _, above := range chain[1:] {
		if g.Expires.IsZero() || !above.Expires.IsZero() && above.Expires.Before(g.Expires) {
			g.Expires = above.Expires
		}
		if g.UsesLeft == Unlimited || above.UsesLeft != Unlimited && above.UsesLeft < g.UsesLeft {
			g.UsesLeft = above.UsesLeft
		}
	}
	return g, nil
}

// Use counts one use of the first grant of a chain, and of each of its ancestors. It
// returns the rows that changed: none where no number of uses is set. The error is of
// KindPrivilege if one of them has ended, and nothing is counted then.
func Use(chain []Grant, now time.Time) (changed []Grant, err error) {
	if err := linked(chain); err != nil {
		return nil, err
	}
	for _, g := range chain {
		if g.Expired(now) || g.Spent() {
			return nil, beyond(g.ended(now), "ask for a new grant")
		}
		if g.UsesLeft != Unlimited {
			g.UsesLeft--
			changed = append(changed, g)
		}
	}
	return changed, nil
}

func linked(chain []Grant) error {
	for i, g := range chain {
		if last := i == len(chain)-1; last && g.Parent != "" || !last && g.Parent != chain[i+1].ID {
			return &agent.Error{Kind: agent.KindConflict, Message: fmt.Sprintf("grant %s was revoked with grant %s", chain[0].ID, g.Parent)}
		}
	}
	if len(chain) == 0 || len(chain) > DepthMost+1 {
		return invalid(fmt.Sprintf("%d grants are no chain", len(chain)), "")
	}
	return nil
}

// ended is the sentence on a grant that has expired or has no uses left.
func (g Grant) ended(now time.Time) string {
	if g.Expired(now) {
		return fmt.Sprintf("grant %s expired at %s", g.ID, g.Expires.Format(time.RFC3339))
	}
	return fmt.Sprintf("grant %s has no uses left", g.ID)
}
