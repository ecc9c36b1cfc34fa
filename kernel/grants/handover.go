package grants

import (
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Related returns a live run that is not the call's own, and whether the call's run is above it.
func (g Grants) Related(c *service.Call, id agent.ID) (run agent.Run, below, found bool) {
	if g.Run != nil {
		run, found = g.Run(id)
	}
	if !found || run.State == agent.StateEnded || id == c.Run.Spec.ID {
		return agent.Run{}, false, false
	}
	return run, Above(run, c.Run.Spec.ID), true
}

// Live reports whether a run still has a grant that has not expired, used up or not.
func (g Grants) Live(c *service.Call, holder agent.ID, id string) (bool, error) {
	own, err := store.Grants.Get(c.Tx, id)
	if err != nil || own == nil || own.Holder != string(holder) {
		return false, err
	}
	*own, err = left(c.Tx, *own)
	return !own.Expired(c.Now), err
}

// handedOver is the reason of a grant that another run has handed over.
const handedOver = "handed over"

// HandOver moves parts of grants from one run to another. Each becomes a grant of the other run in the
// place of the one that it was a part of: below the same parent. That one is gone, with all that were
// derived from it. The other run's manifest must cover each, and nothing that the giver keeps may
// overlap with one.
func (g Grants) HandOver(c *service.Call, from agent.ID, to agent.Run, parts []api.HandoffGrant) (given []api.Grant, out service.Outcome, err error) {
	var moved []grant.Grant
	for _, part := range parts {
		one, gone, err := g.move(c, from, to, part)
		if err != nil {
			return nil, out, err
		}
		moved = append(moved, one)
		given = append(given, shown(one))
		changed(&out, holders(gone)...)
	}
	if len(moved) == 0 {
		return nil, out, nil
	}
	changed(&out, to.Spec.ID)
	out.Changed = slices.Compact(slices.Sorted(slices.Values(out.Changed)))
	return given, out, g.keepsNone(c, from, moved)
}

// move is HandOver of one part. It returns the grants that are gone.
func (g Grants) move(c *service.Call, from agent.ID, to agent.Run, part api.HandoffGrant) (moved grant.Grant, gone []*grant.Grant, err error) {
	want, _, err := request{text: part.Grant, expires: part.Expires, uses: part.Uses}.read(c)
	if err != nil {
		return moved, nil, err
	}
	want.Holder, want.Giver, want.Reason = string(to.Spec.ID), string(from), handedOver
	own, err := store.Grants.Get(c.Tx, part.From)
	if err == nil && (own == nil || own.Holder != string(from)) {
		err = api.Failure(api.CodeNotFound, "each grant is handed over once; grant.list shows those that there are", "no grant %.64q", part.From)
	}
	if err == nil {
		err = g.mayReceive(to, want.Scope)
	}
	if err != nil {
		return moved, nil, err
	}
	part.From = own.ID
	whole, err := left(c.Tx, *own)
	if err == nil {
		moved, err = grant.Derive(whole, want, c.Now)
	}
	if err != nil {
		return moved, nil, refusedBy(api.RuleGrant+part.From, err)
	}
	if moved.Kind == grant.Net && len(grant.Rules([]grant.Grant{moved}, g.IsHost, c.Now)) == 0 {
		return moved, nil, api.Failure(api.CodeDenied, "hand over a target outside of the host", "%s is the host's own address", part.Grant).By(service.StageGrant, api.RuleNetwork)
	}
	if gone, err = store.Grants.Delete(c.Tx, own.ID); err != nil {
		return moved, nil, err
	}
	moved.Parent, moved.Depth = own.Parent, own.Depth
	return moved, gone, store.Grants.Put(c.Tx, &moved)
}

// keepsNone refuses where a run still has a grant for something that it has handed over.
func (g Grants) keepsNone(c *service.Call, from agent.ID, moved []grant.Grant) error {
	kept, err := effective(c.Tx, from)
	for _, k := range kept {
		has, scopeErr := k.Scope()
		for _, m := range moved {
			scope, movedErr := m.Scope()
			if scopeErr != nil || movedErr != nil || k.Expired(c.Now) || k.Spent() || !has.Overlaps(scope) {
				continue
			}
			return api.Failure(api.CodeConflict, "hand that over instead, or give it up first", "the agent would keep grant %s for %s, beside %s that it hands over", k.ID, has, scope).By(service.StageGrant, api.RuleGrant+k.ID)
		}
	}
	return err
}
