package client

import (
	"context"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// Agent returns what a run is, has and was refused. Of its grants it has the first ones;
// Grants has all.
func (c *Client) Agent(ctx context.Context, ref string) (api.AgentResult, error) {
	return call[api.AgentResult](ctx, c, agents.AgentGet.Name, api.RunParams{Run: ref})
}

// Grants returns all grants of a run, oldest first. A cloved that names a next part again
// and again ends it with ctx.
func (c *Client) Grants(ctx context.Context, ref string) ([]api.Grant, error) {
	p := api.GrantListParams{RunParams: api.RunParams{Run: ref}}
	var all []api.Grant
	for {
		part, err := call[api.GrantListResult](ctx, c, agents.GrantList.Name, p)
		if err != nil {
			return nil, err
		}
		all = append(all, part.Grants...)
		if part.Next == "" {
			return all, nil
		}
		p.After = part.Next
	}
}

// Give gives a run a grant.
func (c *Client) Give(ctx context.Context, p api.GrantGiveParams) (api.Grant, error) {
	r, err := call[api.GrantResult](ctx, c, methods.GrantGive.Name, p)
	return r.Grant, err
}

// Derive makes a narrower grant from one that a run holds.
func (c *Client) Derive(ctx context.Context, p api.GrantDeriveParams) (api.Grant, error) {
	r, err := call[api.GrantResult](ctx, c, agents.GrantDerive.Name, p)
	return r.Grant, err
}

// Revoke takes a grant of a run back, with all that was derived from it, and returns the
// ids of those that are gone.
func (c *Client) Revoke(ctx context.Context, ref, id string) ([]string, error) {
	r, err := call[api.GrantRevokeResult](ctx, c, agents.GrantRevoke.Name, api.GrantRevokeParams{RunParams: api.RunParams{Run: ref}, ID: id})
	return r.Revoked, err
}

// CheckGrant returns whether a run may do one thing, and why. Nothing is used up.
func (c *Client) CheckGrant(ctx context.Context, ref, what string) (api.GrantCheckResult, error) {
	return call[api.GrantCheckResult](ctx, c, agents.GrantCheck.Name, api.GrantCheckParams{RunParams: api.RunParams{Run: ref}, What: what})
}
