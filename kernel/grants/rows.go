package grants

import (
	"cmp"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// chainAbove returns a grant with its ancestors, as grant.Effective wants them.
func chainAbove(tx *store.KernelTx, g grant.Grant) ([]grant.Grant, error) {
	chain := []grant.Grant{g}
	for g.Parent != "" && len(chain) <= grant.DepthMost {
		parent, err := store.Grants.Get(tx, g.Parent)
		if err != nil {
			return nil, err
		}
		if parent == nil {
			break
		}
		g = *parent
		chain = append(chain, g)
	}
	return chain, nil
}

// effective returns a run's grants as their ancestors leave them, oldest first.
func effective(tx *store.KernelTx, run agent.ID) ([]grant.Grant, error) {
	all, err := store.Grants.HeldBy(tx, string(run))
	if err != nil {
		return nil, err
	}
	held := make([]grant.Grant, len(all))
	for i, g := range all {
		if held[i], err = left(tx, *g); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(held, func(a, b grant.Grant) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return held, nil
}

// left is a grant as its ancestors leave it.
func left(tx *store.KernelTx, g grant.Grant) (grant.Grant, error) {
	chain, err := chainAbove(tx, g)
	if err != nil {
		return g, err
	}
	return grant.Effective(chain)
}

// holders are those of grants, each once.
func holders(all []*grant.Grant) (runs []agent.ID) {
	for _, g := range all {
		if run := agent.ID(g.Holder); !slices.Contains(runs, run) {
			runs = append(runs, run)
		}
	}
	return runs
}

// shown is a grant as callers see it.
func shown(g grant.Grant) api.Grant {
	text := string(g.Kind) + ":" + g.Pattern
	if scope, err := g.Scope(); err == nil {
		text = scope.String()
	}
	a := api.Grant{ID: g.ID, Grant: text, Holder: agent.ID(g.Holder), Giver: g.Giver, Parent: g.Parent, Created: g.Created, Expires: g.Expires, Reason: g.Reason, Digest: g.Digest}
	if g.UsesLeft != grant.Unlimited {
		a.UsesLeft = &g.UsesLeft
	}
	return a
}

// held returns a grant of the call's run.
func held(c *service.Call, id string) (grant.Grant, error) {
	return heldOr(c, id, func(*grant.Grant) bool { return false })
}

// heldOr is held for a grant of another run too, if it may be. The row is read once: the time says nothing of others'.
func heldOr(c *service.Call, id string, may func(*grant.Grant) bool) (grant.Grant, error) {
	if strings.HasPrefix(id, ruleID) {
		return grant.Grant{}, api.Failure(api.CodeNotFound, "clove update changes the network of a run; clove grant give makes a grant", "%.64q is a rule of the run's network and no grant", id)
	}
	g, err := store.Grants.Get(c.Tx, id)
	if err != nil {
		return grant.Grant{}, err
	}
	if g == nil || g.Holder != string(c.Run.Spec.ID) && !may(g) {
		return grant.Grant{}, api.Failure(api.CodeNotFound, "grant.list shows the grants", "no grant %.64q", id)
	}
	return *g, nil
}
