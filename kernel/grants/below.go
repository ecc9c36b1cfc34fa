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

// pinned returns the digest of the manifest that a scope of kind spawn names, for the grant of it.
func (g Grants) pinned(c *service.Call, scope grant.Scope) (digest string, err error) {
	switch {
	case scope.Kind() != grant.Spawn:
		return "", nil
	case !scope.Concrete():
		return "", api.Failure(api.CodeParams, "give one grant for each manifest", "%s names no one manifest", scope)
	case !c.Run.Spec.Kernel.HasChildren():
		return "", api.Failure(api.CodeConflict, "start it with --grant spawn:NAME or --budget children=N", "%s may start no agents", c.Run.Spec.Name).By(service.StageGrant, api.RuleManifest)
	case g.Manifest == nil:
		return "", api.Failure(api.CodeNotFound, "clove manifest add FILE adds it, with cloved", "there is no manifest %s", scope.Pattern())
	}
	return g.Manifest(c.Tx, c.Run.Owner.UID, scope.Pattern())
}

// below returns a live run that the call's run has started, or one of those that it has started.
func (g Grants) below(c *service.Call, id agent.ID) (agent.Run, error) {
	if g.Run != nil {
		run, found := g.Run(id)
		if found && run.State != agent.StateEnded && Above(run, c.Run.Spec.ID) {
			return run, nil
		}
	}
	return agent.Run{}, api.Failure(api.CodeNotFound, "name a run that the agent has started and that lives, or none", "no run %.64q", string(id)).By(service.StageGrant, api.RuleOwnRun)
}

// Above reports whether one run is above another.
func Above(run agent.Run, id agent.ID) bool {
	return slices.ContainsFunc(run.Above, func(a agent.Ancestor) bool { return a.ID == id })
}

// mayReceive refuses a grant that is wider than what a run's manifest names.
func (g Grants) mayReceive(run agent.Run, scope grant.Scope) error {
	for _, text := range run.Spec.Kernel.Grants {
		if envelope, err := grant.Parse(text); err == nil && envelope.Covers(scope) {
			return g.mayHold(run, scope)
		}
	}
	return api.Failure(api.CodeDenied, "name it in the grants of its manifest", "the manifest of %s grants nothing that covers %s", run.Spec.Name, scope).By(service.StageGrant, api.RuleManifest)
}

// ForChild stores the grants that a child of the call's run begins with: each is derived from one that
// the agent has. Where none covers a text of the child's Spec the error is a refusal.
func (g Grants) ForChild(c *service.Call, child agent.Run) (out service.Outcome, err error) {
	held, err := effective(c.Tx, c.Run.Spec.ID)
	for _, text := range child.Spec.Kernel.FirstGrants() {
		if err != nil {
			return out, err
		}
		var derived grant.Grant
		if derived, err = g.forChild(c, held, child, text); err == nil {
			err = store.Grants.Put(c.Tx, &derived)
		}
	}
	return out, err
}

// forChild derives what one text names.
func (g Grants) forChild(c *service.Call, held []grant.Grant, child agent.Run, text string) (derived grant.Grant, err error) {
	want, _, err := request{text: text, reason: manifestReason(child)}.read(c)
	if err != nil {
		return derived, err
	}
	if want.Scope.Kind() == grant.Spawn && !want.Scope.Concrete() {
		return derived, api.Failure(api.CodeParams, "name one manifest in each", "%s names no one manifest", want.Scope)
	}
	want.Holder, want.Giver = string(child.Spec.ID), string(c.Run.Spec.ID)
	if err := g.mayHold(child, want.Scope); err != nil {
		return derived, err
	}
	for _, from := range mostFirst(held) {
		if derived, err = grant.Derive(from, want, c.Now); err == nil {
			return derived, nil
		}
	}
	return derived, uncovered(c, held, want.Scope)
}

// mostFirst orders grants: those that are used any number of times and for the longest come first.
func mostFirst(held []grant.Grant) []grant.Grant {
	bounds := func(g grant.Grant) (n int) {
		if g.UsesLeft != grant.Unlimited {
			n += 2
		}
		if !g.Expires.IsZero() {
			n++
		}
		return n
	}
	return slices.SortedStableFunc(slices.Values(held), func(a, b grant.Grant) int {
		return cmp.Or(cmp.Compare(bounds(a), bounds(b)), b.Expires.Compare(a.Expires))
	})
}

// uncovered refuses what no grant of the agent's covers, and says which of the kind it has.
func uncovered(c *service.Call, held []grant.Grant, scope grant.Scope) error {
	var has []string
	for _, g := range held {
		if g.Kind == scope.Kind() && !g.Expired(c.Now) && !g.Spent() {
			has = append(has, shown(g).Grant)
		}
	}
	return api.Failure(api.CodeDenied, "ask the owner for a grant of "+scope.String(), "%s cannot pass %s on: of that kind it has %s", c.Run.Spec.Name, scope,
		cmp.Or(strings.Join(has[:min(len(has), 8)], ", "), "none")).By(service.StageGrant, "")
}

// Spawning returns the grant of the call's run that lets it start agents of a manifest, for its digest:
// of several the one that was given last.
func (g Grants) Spawning(c *service.Call, name string) (allowing grant.Grant, err error) {
	what, err := grant.NewScope(grant.Spawn, name, grant.NoRights)
	if err != nil {
		return allowing, err
	}
	held, err := effective(c.Tx, c.Run.Spec.ID)
	if err != nil {
		return allowing, err
	}
	slices.Reverse(held)
	allowing, reason, ok := grant.Check(held, what, c.Now)
	if !ok {
		return allowing, api.Failure(api.CodeDenied, "ask the owner for a grant of "+what.String(), "%s", reason).By(service.StageGrant, "")
	}
	return allowing, nil
}

// revocable returns a grant of the call's run, or one that its agent derived for a run below it.
func (g Grants) revocable(c *service.Call, id string) (grant.Grant, error) {
	return heldOr(c, id, func(given *grant.Grant) bool {
		if !c.Agent || given.Giver != string(c.Run.Spec.ID) || g.Run == nil {
			return false
		}
		run, found := g.Run(agent.ID(given.Holder))
		return found && Above(run, c.Run.Spec.ID)
	})
}
