package grants

import (
	"net/netip"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// InAnswer bounds a part of a list: with the longest texts it fits into a line of an agent's.
const InAnswer = 40

// Grants is the service.
type Grants struct {
	// IsHost reports whether an address is one of the host's own, as in egress.Config.
	IsHost func(netip.Addr) bool
	// CheckNet refuses a network rule that a run of the owner's could not start with.
	CheckNet func(rule agent.EgressRule, owner agent.Owner) error
	// Manifest returns the digest of a manifest that the owner has added; nil: there are none.
	Manifest func(tx *store.KernelTx, owner uint32, name string) (digest string, err error)
	// Run returns a run by its id; nil: no run is below another.
	Run func(id agent.ID) (run agent.Run, found bool)
}

// Service returns its methods.
func (g Grants) Service() *service.Service {
	return service.New("grant").On(
		service.Read(agents.GrantList, service.Stages[api.GrantListParams]{}, g.list),
		service.Read(agents.GrantCheck, service.Stages[api.GrantCheckParams]{}, g.check),
		service.Write(methods.GrantGive, service.Stages[api.GrantGiveParams]{}, g.give),
		service.Write(agents.GrantDerive, service.Stages[api.GrantDeriveParams]{}, g.derive),
		service.Write(agents.GrantRevoke, service.Stages[api.GrantRevokeParams]{}, g.revoke),
	)
}

func (g Grants) list(c *service.Call, p api.GrantListParams) (result api.GrantListResult, out service.Outcome, err error) {
	all, err := g.Shown(c)
	if err != nil {
		return result, out, err
	}
	if p.After != "" {
		at := slices.IndexFunc(all, func(g api.Grant) bool { return g.ID == p.After })
		all = all[at+1:] // one that was revoked meanwhile: from the beginning
	}
	result.Grants = append([]api.Grant{}, all[:min(len(all), InAnswer)]...)
	if len(all) > InAnswer {
		result.Next = all[InAnswer-1].ID
	}
	return result, out, nil
}

func (g Grants) check(c *service.Call, p api.GrantCheckParams) (result api.GrantCheckResult, out service.Outcome, err error) {
	what, err := grant.Parse(p.What)
	if err != nil {
		return result, out, err
	}
	held, err := effective(c.Tx, c.Run.Spec.ID)
	if err != nil {
		return result, out, err
	}
	out.About, out.Verdict = what.String(), audit.VerdictDeny
	by, reason, ok := grant.Check(held, what, c.Now)
	if ok {
		reason = "grant " + by.ID + " allows it"
		out.Rule, out.Verdict = by.ID, audit.VerdictAllow
	}
	result = api.GrantCheckResult{Allowed: ok, Grant: by.ID, Reason: reason}
	if what.Kind() == grant.Net {
		err = g.checkNet(c, what, held, &result, &out)
	}
	return result, out, err
}

// request is what was asked for.
type request struct {
	text    string
	expires time.Time
	uses    *int64
	reason  string
}

// read makes a grant's request for the run of the call, and what the entry says of it.
func (r request) read(c *service.Call) (want grant.Request, out service.Outcome, err error) {
	scope, err := grant.Parse(r.text)
	if err != nil {
		return want, out, err
	}
	out.About, out.Reason = scope.String(), r.reason
	want = grant.Request{ID: string(agent.NewID()), Scope: scope, Expires: r.expires, Holder: string(c.Run.Spec.ID), Giver: giver(c), Reason: r.reason}
	if r.uses != nil {
		if want.Uses = *r.uses; want.Uses <= 0 {
			return want, out, api.Failure(api.CodeParams, "leave the uses out for any number", "a grant cannot have %d uses", want.Uses)
		}
	}
	return want, out, nil
}

// giver names the caller as a grant's giver.
func giver(c *service.Call) string {
	if c.Agent {
		return string(c.Run.Spec.ID)
	}
	return audit.PrincipalUser(c.UID)
}

func (g Grants) give(c *service.Call, p api.GrantGiveParams) (result api.GrantResult, out service.Outcome, err error) {
	want, out, err := request{p.Grant, p.Expires, p.Uses, p.Reason}.read(c)
	if err != nil {
		return result, out, err
	}
	given, err := g.first(c, want)
	if err != nil {
		return result, out, err
	}
	return enter(c, given, out)
}

// Give gives the call's run a grant in the name of the caller; expires: zero, never.
func (g Grants) Give(c *service.Call, scope, reason string, expires time.Time) (id string, out service.Outcome, err error) {
	result, out, err := g.give(c, api.GrantGiveParams{Grant: scope, Reason: reason, Expires: expires})
	return result.Grant.ID, out, err
}

// first makes a grant of the call's run that is derived from none.
func (g Grants) first(c *service.Call, want grant.Request) (given grant.Grant, err error) {
	if err := g.mayHold(c.Run, want.Scope); err != nil {
		return given, err
	}
	digest, err := g.pinned(c, want.Scope)
	if err != nil {
		return given, err
	}
	given, err = grant.New(want, c.Now)
	given.Digest = digest
	return given, err
}

// enter stores a new grant.
func enter(c *service.Call, g grant.Grant, out service.Outcome) (api.GrantResult, service.Outcome, error) {
	if err := store.Grants.Put(c.Tx, &g); err != nil {
		return api.GrantResult{}, out, err
	}
	out.Rule = g.ID
	out.Happened(agent.RunGrantGiven, eventText(c, g))
	changed(&out, agent.ID(g.Holder))
	return api.GrantResult{Grant: shown(g)}, out, nil
}

// eventText is a grant in an event of the call's run.
func eventText(c *service.Call, g grant.Grant) string {
	text := shown(g).Grant
	if g.Holder != string(c.Run.Spec.ID) {
		text += " of " + g.Holder
	}
	return text
}

// changed notes that the grants of runs are others now.
func changed(out *service.Outcome, holders ...agent.ID) {
	for _, holder := range holders {
		out.Changed = append(out.Changed, holder)
		out.Notify(holder, service.Notice{Kind: api.NoteGrantsChanged, Params: api.GrantsNote{}})
	}
}

func (g Grants) derive(c *service.Call, p api.GrantDeriveParams) (result api.GrantResult, out service.Outcome, err error) {
	want, out, err := request{p.Grant, p.Expires, p.Uses, p.Reason}.read(c)
	if err != nil {
		return result, out, err
	}
	if p.To != "" && p.To != c.Run.Spec.ID {
		to, err := g.below(c, p.To)
		if err == nil {
			err = g.mayReceive(to, want.Scope)
		}
		if err != nil {
			return result, out, err
		}
		want.Holder = string(to.Spec.ID)
	}
	from, err := held(c, p.From)
	if err == nil {
		from, err = left(c.Tx, from)
	}
	if err != nil {
		return result, out, err
	}
	derived, err := grant.Derive(from, want, c.Now)
	if err != nil {
		return result, out, refusedBy(api.RuleGrant+from.ID, err)
	}
	return enter(c, derived, out)
}

func (g Grants) revoke(c *service.Call, p api.GrantRevokeParams) (result api.GrantRevokeResult, out service.Outcome, err error) {
	own, err := g.revocable(c, p.ID)
	if err != nil {
		return result, out, err
	}
	if c.Agent && own.Giver != giver(c) {
		return result, out, api.Failure(api.CodeDenied, "ask its giver", "grant %s was not derived by this agent", own.ID).By(service.StageGrant, api.RuleGrant+own.ID)
	}
	out.About, out.Rule = shown(own).Grant, own.ID
	gone, err := store.Grants.Delete(c.Tx, own.ID)
	if err != nil {
		return result, out, err
	}
	out.Happened(agent.RunGrantRevoked, eventText(c, own))
	for _, g := range gone {
		result.Revoked = append(result.Revoked, g.ID)
	}
	changed(&out, holders(gone)...)
	return result, out, nil
}
