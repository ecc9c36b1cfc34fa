package client

import (
	"context"
	"encoding/json"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// Diff gives each change of a run's files; the result's digest is for Apply.
func (c *Client) Diff(ctx context.Context, ref string, each func(agent.Change) error) (r api.DiffResult, err error) {
	return c.DiffTo(ctx, api.DiffParams{RunParams: api.RunParams{Run: ref}}, each)
}

// DiffTo is Diff with a directory in place of the workspace, for a layer below lost/.
func (c *Client) DiffTo(ctx context.Context, params api.DiffParams, each func(agent.Change) error) (r api.DiffResult, err error) {
	err = c.Stream(ctx, methods.RunDiff.Name, params, &r, eachChange(each))
	return r, err
}

// Apply writes a run's workspace back to the host with the caller's own rights
// and gives each change that was made or refused.
func (c *Client) Apply(ctx context.Context, params api.ApplyParams, each func(agent.Change) error) (r api.ApplyResult, err error) {
	err = c.Stream(ctx, methods.RunApply.Name, params, &r, eachChange(each))
	return r, err
}

// eachChange takes the change out of its notification.
func eachChange(each func(agent.Change) error) func(string, json.RawMessage) error {
	return notes(func(note api.ChangeNote) error { return each(note.Change) })
}
