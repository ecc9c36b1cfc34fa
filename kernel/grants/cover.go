package grants

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Cover returns the id of the grant of the call's run that covers what, or refuses.
func (g Grants) Cover(c *service.Call, what string) (rule string, err error) {
	scope, err := grant.Parse(what)
	if err != nil {
		return "", err
	}
	held, err := effective(c.Tx, c.Run.Spec.ID)
	if err != nil {
		return "", err
	}
	allowing, reason, ok := grant.Check(held, scope, c.Now)
	if !ok {
		return "", api.Failure(api.CodeDenied, "ask the owner for a grant of "+scope.String(), "%s", reason).By(service.StageGrant, "")
	}
	return allowing.ID, nil
}

// Use counts one use of a grant that covered, and of those above it.
func (g Grants) Use(c *service.Call, rule string) error {
	changed, err := afterUse(c, rule)
	for _, g := range changed {
		if err == nil {
			err = store.Grants.Put(c.Tx, &g)
		}
	}
	return err
}

// Counted reports whether a grant that covered has a number of uses, or one above it. One that
// cannot be read is counted.
func (g Grants) Counted(c *service.Call, rule string) bool {
	changed, err := afterUse(c, rule)
	return err != nil || len(changed) > 0
}

// afterUse returns what one use of a grant changes: it and those above it, as far as their uses
// are counted.
func afterUse(c *service.Call, rule string) ([]grant.Grant, error) {
	own, err := held(c, rule)
	if err != nil {
		return nil, err
	}
	chain, err := chainAbove(c.Tx, own)
	if err != nil {
		return nil, err
	}
	return grant.Use(chain, c.Now)
}

// mayHold refuses a grant that nothing could hold.
func (g Grants) mayHold(run agent.Run, scope grant.Scope) error {
	if scope.Kind() != grant.Net {
		return nil
	}
	if !run.Spec.Gated() {
		return api.Failure(api.CodeConflict, "start the run with --agent-socket, or with a network", "%s has no network that a rule could open", run.Spec.Name).By(service.StageGrant, api.RuleNetwork)
	}
	return refusedBy(api.RuleNetwork, g.CheckNet(agent.EgressRule{Target: scope.Pattern()}, run.Owner))
}

// refusedBy notes in an error which rule decided, if it is a refusal.
func refusedBy(rule string, err error) error {
	if err == nil || agent.KindOf(err) != agent.KindPrivilege {
		return err
	}
	return api.ErrorOf(err).By(service.StageGrant, rule)
}

// Anew gives the run of a manifest what the manifest grants, as at its first start. What was left
// of that, and all that was derived in the life before, is removed, and what other runs handed over; what people gave stays. A run
// that an agent started keeps what it has, as Begin does.
func (g Grants) Anew(c *service.Call) (out service.Outcome, err error) {
	reason := manifestReason(c.Run)
	if reason == "" || c.Run.Parent != "" {
		return out, nil
	}
	held, err := store.Grants.HeldBy(c.Tx, string(c.Run.Spec.ID))
	for _, own := range held {
		if own.Parent != "" || own.Reason == reason || own.Reason == handedOver {
			gone, goneErr := store.Grants.Delete(c.Tx, own.ID)
			err = cmp.Or(err, goneErr)
			changed(&out, slices.DeleteFunc(holders(gone), func(run agent.ID) bool { return run == c.Run.Spec.ID })...)
		}
	}
	return out, cmp.Or(err, g.Begin(c))
}

// manifestReason is the reason of what a manifest grants; empty: the run has none.
func manifestReason(run agent.Run) string {
	if file := run.Spec.Manifest.String(); file != "" {
		return "manifest " + file
	}
	return ""
}

// Begin stores the grants that a run starts with. Those of a run that an agent started were
// derived when that was (ForChild), and are not given again.
func (g Grants) Begin(c *service.Call) error {
	if c.Run.Parent != "" {
		return nil
	}
	for _, text := range c.Run.Spec.Kernel.FirstGrants() {
		want, _, err := request{text: text}.read(c)
		if err != nil {
			return err
		}
		want.Giver = fmt.Sprintf("uid:%d", c.Run.Owner.UID)
		want.Reason = manifestReason(c.Run)
		first, err := g.first(c, want)
		if err != nil {
			return err
		}
		if err := store.Grants.Put(c.Tx, &first); err != nil {
			return err
		}
	}
	return nil
}

// Standing adds the rules of a run's net grants, and returns when the first of them expires.
func (g Grants) Standing(tx *store.KernelTx, run agent.Run, now time.Time, s *api.Standing) (until time.Time, err error) {
	held, err := effective(tx, run.Spec.ID)
	for _, own := range held {
		for _, rule := range grant.Rules([]grant.Grant{own}, g.IsHost, now) {
			s.Net = append(s.Net, api.NetRule{EgressRule: rule, Expires: own.Expires})
		}
		if own.Kind == grant.Net && own.Expires.After(now) && (until.IsZero() || own.Expires.Before(until)) {
			until = own.Expires
		}
	}
	return until, err
}
