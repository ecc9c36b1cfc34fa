package kernel

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/store"
)

// grantsInAnswer bounds a part of a list: with the longest texts it fits into a line of an
// agent's.
const grantsInAnswer = 40

// chainAbove returns a grant with its ancestors, as grant.Effective wants them.
func chainAbove(tx *store.KernelTx, g grant.Grant) ([]grant.Grant, error) {
	chain := []grant.Grant{g}
	for g.Parent != "" && len(chain) <= grant.DepthMost {
		parent, err := tx.Grant(g.Parent)
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
	held, err := tx.GrantsOf(string(run))
	if err != nil {
		return nil, err
	}
	for i, g := range held {
		chain, err := chainAbove(tx, g)
		if err == nil {
			held[i], err = grant.Effective(chain)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(held, func(a, b grant.Grant) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return held, nil
}

// shown is a grant as callers see it.
func shown(g grant.Grant) api.Grant {
	text := string(g.Kind) + ":" + g.Pattern
	if scope, err := g.Scope(); err == nil {
		text = scope.String()
	}
	a := api.Grant{ID: g.ID, Grant: text, Holder: agent.ID(g.Holder), Giver: g.Giver, Parent: g.Parent, Created: g.Created, Expires: g.Expires, Reason: g.Reason}
	if g.UsesLeft != grant.Unlimited {
		a.UsesLeft = &g.UsesLeft
	}
	return a
}

func (c *call) grantList(p api.GrantListParams) (any, error) {
	held, err := effective(c.tx, c.Run.Spec.ID)
	if err != nil {
		return nil, err
	}
	all, err := c.shownAll(held)
	if err != nil {
		return nil, err
	}
	if p.After != "" {
		at := slices.IndexFunc(all, func(g api.Grant) bool { return g.ID == p.After })
		all = all[at+1:] // one that was revoked meanwhile: from the beginning
	}
	result := api.GrantListResult{Grants: append([]api.Grant{}, all[:min(len(all), grantsInAnswer)]...)}
	if len(all) > grantsInAnswer {
		result.Next = all[grantsInAnswer-1].ID
	}
	return result, nil
}

func (c *call) grantCheck(p api.GrantCheckParams) (any, error) {
	what, err := grant.Parse(p.What)
	if err != nil {
		return nil, err
	}
	held, err := effective(c.tx, c.Run.Spec.ID)
	if err != nil {
		return nil, err
	}
	c.about, c.verdict = what.String(), audit.VerdictDeny
	by, reason, ok := grant.Check(held, what, c.now)
	if ok {
		reason = "grant " + by.ID + " allows it"
		c.rule, c.verdict = by.ID, audit.VerdictAllow
	}
	answer := api.GrantCheckResult{Allowed: ok, Grant: by.ID, Reason: reason}
	if what.Kind() == grant.Net {
		err = c.checkNet(what, held, &answer)
	}
	return answer, err
}

// request reads what was asked for.
func (c *call) request(text string, holder agent.ID, expires time.Time, uses *int64, reason string) (grant.Request, error) {
	scope, err := grant.Parse(text)
	if err != nil {
		return grant.Request{}, err
	}
	c.about, c.reason = scope.String(), reason
	r := grant.Request{ID: string(agent.NewID()), Scope: scope, Expires: expires, Holder: string(holder), Giver: c.giver(), Reason: reason}
	if uses != nil {
		if r.Uses = *uses; r.Uses <= 0 {
			return r, api.Failure(api.CodeParams, "leave the uses out for any number", "a grant cannot have %d uses", r.Uses)
		}
	}
	return r, nil
}

func (c *call) grantGive(p api.GrantGiveParams) (any, error) {
	want, err := c.request(p.Grant, c.Run.Spec.ID, p.Expires, p.Uses, p.Reason)
	if err != nil {
		return nil, err
	}
	if err := c.kernel.mayHold(c.Run, want.Scope); err != nil {
		return nil, err
	}
	g, err := grant.New(want, c.now)
	if err != nil {
		return nil, err
	}
	return c.enter(g)
}

// mayHold refuses a grant that nothing could hold.
func (k *Kernel) mayHold(run agent.Run, scope grant.Scope) error {
	if scope.Kind() != grant.Net {
		return nil
	}
	if !run.Spec.Gated() {
		return api.Failure(api.CodeConflict, "start the run with --agent-socket, or with a network", "%s has no network that a rule could open", run.Spec.Name).By(stageGrant, api.RuleNetwork)
	}
	return refusedBy(api.RuleNetwork, k.config.CheckNet(agent.EgressRule{Target: scope.Pattern()}, run.Owner))
}

// refusedBy notes in an error which rule decided, if it is a refusal.
func refusedBy(rule string, err error) error {
	if err == nil || agent.KindOf(err) != agent.KindPrivilege {
		return err
	}
	return api.ErrorOf(err).By(stageGrant, rule)
}

// enter stores a new grant.
func (c *call) enter(g grant.Grant) (any, error) {
	if err := c.tx.PutGrant(g); err != nil {
		return nil, err
	}
	c.rule, c.changed = g.ID, true
	c.happened(agent.RunGrantGiven, shown(g).Grant)
	if agent.ID(g.Holder) == c.Run.Spec.ID {
		c.notices = append(c.notices, notice(api.NoteGrantsChanged, api.Nothing{}))
	}
	return api.GrantResult{Grant: shown(g)}, nil
}

// held returns a grant of the run's.
func (c *call) held(id string) (grant.Grant, error) {
	if err := notARule(id); err != nil {
		return grant.Grant{}, err
	}
	g, err := c.tx.Grant(id)
	if err != nil {
		return grant.Grant{}, err
	}
	if g == nil || g.Holder != string(c.Run.Spec.ID) {
		return grant.Grant{}, noGrant(id)
	}
	return *g, nil
}

func noGrant(id string) error {
	return api.Failure(api.CodeNotFound, "grant.list shows the grants", "no grant %.64q", id)
}

func (c *call) grantDerive(p api.GrantDeriveParams) (any, error) {
	holder := cmp.Or(p.To, c.Run.Spec.ID)
	if holder != c.Run.Spec.ID {
		// Runs that agents start come later; until then a run has no descendants.
		return nil, api.Failure(api.CodeNotFound, "derive for the run itself", "no run %.64q", string(holder)).By(stageGrant, api.RuleOwnRun)
	}
	want, err := c.request(p.Grant, holder, p.Expires, p.Uses, p.Reason)
	if err != nil {
		return nil, err
	}
	from, err := c.held(p.From)
	if err != nil {
		return nil, err
	}
	chain, err := chainAbove(c.tx, from)
	if err != nil {
		return nil, err
	}
	if from, err = grant.Effective(chain); err != nil {
		return nil, err
	}
	g, err := grant.Derive(from, want, c.now)
	if err != nil {
		return nil, refusedBy(api.RuleGrant+from.ID, err)
	}
	return c.enter(g)
}

func (c *call) grantRevoke(p api.GrantRevokeParams) (any, error) {
	g, err := c.held(p.ID)
	if err != nil {
		return nil, err
	}
	if c.Agent && g.Giver != c.giver() {
		return nil, api.Failure(api.CodeDenied, "ask whoever gave it", "grant %s was not derived by this agent", g.ID).By(stageGrant, api.RuleGrant+g.ID)
	}
	c.about, c.rule = shown(g).Grant, g.ID
	gone, err := c.tx.DeleteGrant(g.ID)
	if err != nil {
		return nil, err
	}
	result := api.GrantRevokeResult{Revoked: []string{}}
	for _, g := range gone {
		result.Revoked = append(result.Revoked, g.ID)
	}
	c.changed = true
	c.happened(agent.RunGrantRevoked, c.about)
	c.notices = append(c.notices, notice(api.NoteGrantsChanged, api.Nothing{}))
	return result, nil
}

// firstGrants are the grants that a run starts with.
func (c *call) firstGrants() error {
	for _, text := range c.Run.Spec.Kernel.Grants {
		want, err := c.request(text, c.Run.Spec.ID, time.Time{}, nil, "")
		if err != nil {
			return err
		}
		want.Giver = fmt.Sprintf("uid:%d", c.Run.Owner.UID)
		if err := c.kernel.mayHold(c.Run, want.Scope); err != nil {
			return err
		}
		g, err := grant.New(want, c.now)
		if err != nil {
			return err
		}
		if err := c.tx.PutGrant(g); err != nil {
			return err
		}
	}
	return nil
}
